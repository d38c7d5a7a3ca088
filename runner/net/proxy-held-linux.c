/*
 * Connections that no rule allows, while a person is asked about them.
 *
 * An answer allows what a rule HOST:PORT would: the name is looked up and pinned, it may lead to
 * the open internet only, and the client's bytes are judged. Nobody is asked about addresses of
 * private networks and of this machine: they need a rule.
 */
#include <stdlib.h>
#include <string.h>

#include "runner/net/proxy-i.h"

static void hold(struct proxy *p, const struct ask *ask, const struct allow_target *target,
		 enum net_rule rule, unsigned question)
{
	struct held_ask *h = p->n_held < PROXY_HELD_MAX ? calloc(1, sizeof(*h)) : NULL;

	if (!h) {
		proxy_refuse_ask(p, ask, NET_RULE_LIMIT);
		return;
	}
	*h = (struct held_ask){
		.question = question, .ask = *ask, .target = *target, .rule = rule, .next = p->held
	};
	p->held = h;
	p->n_held++;
}

static enum net_verdict ask_about(struct proxy *p, const struct ask *ask,
				  const struct allow_target *target, enum net_rule rule,
				  unsigned *ret)
{
	struct net_refusal refusal;

	if (!p->options.ask || ask->port == 0 || (target->literal && addr_special(&target->addr)))
		return NET_ASK_NO;
	/* The canonical name: one question, however it is spelled. */
	net_refusal_init(&refusal, rule, target->host, strlen(target->host), ask->port, "");
	return p->options.ask(p->options.ask_ctx, &refusal, ret);
}

void proxy_no_rule(struct proxy *p, const struct ask *ask, const struct allow_target *target,
		   enum net_rule rule)
{
	unsigned question = 0;

	switch (ask_about(p, ask, target, rule, &question)) {
	case NET_ASK_YES:
		proxy_take_open(p, ask, target);
		break;
	case NET_ASK_WAITS:
		hold(p, ask, target, rule, question);
		break;
	case NET_ASK_NO:
		proxy_refuse_ask(p, ask, rule);
		break;
	}
}

void proxy_decide(struct proxy *p, unsigned number, bool allow)
{
	struct held_ask **at = &p->held, *h;

	while ((h = *at)) {
		if (h->question != number) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		p->n_held--;
		if (allow)
			proxy_take_open(p, &h->ask, &h->target);
		else
			proxy_refuse_ask(p, &h->ask, h->rule);
		free(h);
	}
	loop_wake(&p->loop, clock_ms()); /* a step minds the clocks of what has begun */
}

void proxy_drop_held(struct proxy *p)
{
	struct held_ask *h;

	while ((h = p->held)) {
		p->held = h->next;
		free(h);
	}
	p->n_held = 0;
}
