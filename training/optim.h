// <caldera/optim.h>: optimisers, learning rates, clipping: what loops of one's own take, without the trainer.
#pragma once

#include "training/optim/adamw.h"
#include "training/optim/clip.h"
#include "training/optim/optimizer.h"
#include "training/optim/parameter_group.h"
#include "training/optim/rates.h"
#include "training/optim/registry.h"
#include "training/optim/schedule.h"
#include "training/optim/sgd.h"
#include "training/optim/weight_average.h"
