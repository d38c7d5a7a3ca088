/*
 * metrics-i.h - the counters of this process.
 */
#pragma once

#include "engine/api/metrics.h"
#include "engine/host/host-i.h"

NODISCARD int metrics_collect(struct host *h, struct engine_daemon_metrics *ret, struct err *err);
