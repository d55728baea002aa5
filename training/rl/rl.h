// <caldera/rl.h>: environments, and agents that learn to act in them.
//
//   caldera::rl::PPO agent(caldera::rl::make_vector_environment("CartPole-v1", 8, 1));
//   agent.train(100'000);
//   agent.policy().save("policy.safetensors");
#pragma once

#include "training/rl/envs/batch_environment.h"
#include "training/rl/envs/check_environment.h"
#include "training/rl/envs/environment.h"
#include "training/rl/envs/graph_environment.h"
#include "training/rl/envs/monitor.h"
#include "training/rl/envs/multi_agent.h"
#include "training/rl/envs/normalized_environment.h"
#include "training/rl/envs/registry.h"
#include "training/rl/envs/running_moments.h"
#include "training/rl/envs/time_limit.h"
#include "training/rl/envs/transforms.h"
#include "training/rl/envs/vector_environment.h"
#include "training/rl/envs/wrapper.h"
#include "training/rl/nets/actor_critic.h"
#include "training/rl/nets/adam_rule.h"
#include "training/rl/nets/mlp.h"
#include "training/rl/policy/agent.h"
#include "training/rl/policy/agent_report.h"
#include "training/rl/policy/log.h"
#include "training/rl/policy/policy.h"
#include "training/rl/ppo/device_ppo.h"
#include "training/rl/ppo/gae.h"
#include "training/rl/ppo/ppo.h"
#include "training/rl/presets.h"
#include "training/rl/sac/sac.h"
#include "training/rl/spaces/random.h"
#include "training/rl/spaces/space.h"
