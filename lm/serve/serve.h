// <caldera/serve.h>: serves language models, and pages about runs; <caldera/lm.h> with it.
#pragma once

#include "lm/serve/http/page_server.h"
#include "lm/serve/hub/hub_pull.h"
#include "lm/serve/model_server.h"
