// <caldera/losses.h>: all losses, those of <caldera/caldera.h> among them.
#pragma once

#include "ops/loss/cross_entropy.h"
#include "ops/loss/ctc.h"
#include "ops/loss/focal.h"
#include "ops/loss/nll.h"
#include "ops/loss/ranking.h"
#include "ops/loss/reduction.h"
#include "ops/loss/regression.h"
