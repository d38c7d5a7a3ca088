#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "runner/net/proxy-i.h"
#include "runner/net/send-fd.h"

void proxy_send(struct proxy *p, const struct answer *answer, int fd)
{
	unsigned char bytes[ANSWER_MAX];
	const size_t len = answer_encode(answer, bytes);

	IGNORE_RESULT(send_fd(p->asks.fd, bytes, len, fd, MSG_DONTWAIT),
		      "the bridge has gone, or reads nothing");
}

void proxy_answer(struct conn *c, enum ask_status status, const char *sentence, int fd)
{
	struct answer answer = { .status = status, .id = c->id };

	snprintf(answer.sentence, sizeof(answer.sentence), "%s", sentence);
	proxy_send(c->proxy, &answer, fd);
}

/* A run that is refused very often is slowed down: it must not keep its caller busy or stop the count. */
static void report_refusal(struct proxy *p, const struct net_refusal *refusal)
{
	if (p->options.refused)
		p->options.refused(p->options.refused_ctx, refusal);
	if (++p->refused >= PROXY_REFUSED_MAX)
		p->hear_at = clock_ms() + PROXY_PACE_MS;
}

void proxy_refuse_ask(struct proxy *p, const struct ask *ask, enum net_rule rule)
{
	struct answer answer = { .status = ASK_REFUSED, .id = ask->id };
	struct net_refusal refusal;

	net_refusal_init(&refusal, rule, ask->host, ask->host_len, ask->port, "");
	if (rule == NET_RULE_BYTES)
		net_refusal_set_bytes(&refusal, p->options.max_out);
	net_refusal_explain(&refusal, answer.sentence, sizeof(answer.sentence));
	report_refusal(p, &refusal);
	proxy_send(p, &answer, -1);
}

void proxy_refuse(struct conn *c, enum net_rule rule, const char *detail)
{
	char sentence[ASK_SENTENCE_MAX + 1];
	struct net_refusal refusal;

	net_refusal_init(&refusal, rule, c->target.host, strlen(c->target.host), c->port, detail);
	if (rule == NET_RULE_BYTES)
		net_refusal_set_bytes(&refusal, c->proxy->options.max_out);
	if (c->tls)
		net_refusal_set_tls(&refusal);
	report_refusal(c->proxy, &refusal);
	net_refusal_explain(&refusal, sentence, sizeof(sentence));
	if (!c->relaying)
		proxy_answer(c, ASK_REFUSED, sentence, -1);
	else
		snprintf(c->last_words, sizeof(c->last_words), "%s", sentence);
}

bool proxy_charge(struct proxy *p, uint64_t n)
{
	const uint64_t max = p->options.max_out;

	if (max > 0 && n > max - p->sent) {
		p->capped = true;
		return false;
	}
	p->sent += n;
	return true;
}
