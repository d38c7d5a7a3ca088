#include "cli/cmd/service.h"

void service_set_json(struct json j, const struct engine_service *s)
{
	json_set_text(j, "version", s->version);
	json_set_int(j, "pid", s->pid);
	json_set_uint(j, "mounted", s->mounted);
	json_set_text(j, "spare", s->warm_clone);
	json_set_uint(j, "spares", s->warm_ready);
	json_set_uint(j, "spares_taken", s->warm_taken);
}
