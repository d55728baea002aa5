// <caldera/training.h>: trains models; <caldera/lm.h> with it.
#pragma once

#include "lm/lm.h"
#include "training/data/dataset.h"
#include "training/evaluate/evaluate.h"
#include "training/objectives/loss.h"
#include "training/optim/adamw.h"
#include "training/optim/clip.h"
#include "training/optim/optimizer.h"
#include "training/optim/registry.h"
#include "training/optim/schedule.h"
#include "training/optim/sgd.h"
#include "training/trainer/json_log.h"
#include "training/trainer/observer.h"
#include "training/trainer/progress.h"
#include "training/trainer/trainer.h"
