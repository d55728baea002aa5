// The eager API whole, <caldera/v1.h>: that of the engine and that of models.
#pragma once

#include "engine/eager/v1.h"
#include "training/eager/embedding.h"
