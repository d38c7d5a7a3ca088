#include "engine/api/metrics.h"
#include "engine/wire/wire-i.h"

static const struct field meter_fields[] = {
	FIELD(FIELD_NAME, struct engine_meter, op),
	FIELD(FIELD_UINT, struct engine_meter, count),
	FIELD(FIELD_UINT, struct engine_meter, sum_ns),
	FIELD(FIELD_UINT, struct engine_meter, us10),
	FIELD(FIELD_UINT, struct engine_meter, us100),
	FIELD(FIELD_UINT, struct engine_meter, ms1),
	FIELD(FIELD_UINT, struct engine_meter, ms10),
	FIELD(FIELD_UINT, struct engine_meter, ms100),
	FIELD(FIELD_UINT, struct engine_meter, s1),
	FIELD(FIELD_UINT, struct engine_meter, longer),
};
static const struct fields meter = FIELDS(struct engine_meter, meter_fields);

static const struct field traffic_fields[] = {
	FIELD(FIELD_NAME, struct engine_traffic, clone),
	FIELD(FIELD_UINT, struct engine_traffic, requests),
	FIELD(FIELD_UINT, struct engine_traffic, read),
	FIELD(FIELD_UINT, struct engine_traffic, written),
	FIELD(FIELD_UINT, struct engine_traffic, waiting),
	FIELD(FIELD_UINT, struct engine_traffic, rests),
};
static const struct fields traffic = FIELDS(struct engine_traffic, traffic_fields);

static const struct field wire_metrics_fields[] = {
	FIELD_LIST_OF(FIELD_LIST, struct engine_daemon_metrics, "ops", ops, n_ops, &meter),
	FIELD_LIST_OF(FIELD_LIST, struct engine_daemon_metrics, "traffic", traffic, n_traffic,
		      &traffic),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, mounted),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, dirty_bytes),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, nodes),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, commits),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, sweeps),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, store_waits),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, room_waits),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, cache_hits),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, cache_misses),
	FIELD(FIELD_UINT, struct engine_daemon_metrics, cache_bytes),
};
const struct fields wire_metrics = FIELDS(struct engine_daemon_metrics, wire_metrics_fields);
