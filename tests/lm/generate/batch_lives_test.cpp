// The lives of requests in a batch: how they end, what they share, what is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/lora.h"
#include "lm/nn/layers/linear.h"
#include "tests/lm/generate/batch_requests.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

/// A model that looks at the ids of each call first.
class WatchedModel final : public CausalLM {
 public:
  WatchedModel() : CausalLM(Device::cpu()), inner_(batch_config(), Device::cpu(), 3) {}

  const ModelConfig& config() const override { return inner_.config(); }
  LazyTensor hidden_states(const LazyTensor& ids, AttentionCache* cache) override {
    if (watch) watch(ids.to_vector<std::int32_t>());
    return inner_.hidden_states(ids, cache);
  }
  LazyTensor logits(const LazyTensor& hidden) override { return inner_.logits(hidden); }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override { inner_.visit(prefix, visitor); }
  CausalLM& inner() { return inner_; }

  std::function<void(const Ids&)> watch;

 private:
  Llama inner_;
};

TEST(BatchLives, AnErrorOfTheModelEndsItsRequestAlone) {
  WatchedModel model;
  const Ids healthy = healthy_prompt(model.inner(), 20);
  const Ids expected = alone(model.inner(), healthy, 20);
  model.watch = [](const Ids& ids) {
    if (std::find(ids.begin(), ids.end(), 60) != ids.end()) throw ValueError("token 60 is cursed");
  };
  BatchGenerator generator(model, {.max_batch = 4});
  Answer before, in_prompt, in_row, after;
  generator.submit(asking(healthy, 20, before));
  generator.step();
  generator.submit(asking(Ids(40, 60), 20, in_prompt));
  generator.submit(asking({60}, 20, in_row));  // is computed in one call with the others
  generator.submit(asking(healthy, 20, after));
  generator.run();
  for (const Answer* answer : {&before, &after}) {
    EXPECT_EQ(answer->ids, expected);
    EXPECT_EQ(answer->ends, 1);
  }
  for (const Answer* answer : {&in_prompt, &in_row}) {
    EXPECT_EQ(answer->last.finish, FinishReason::failed);
    EXPECT_EQ(answer->last.error, "token 60 is cursed");
    EXPECT_EQ(answer->ends, 1);
    EXPECT_TRUE(answer->ids.empty());
  }
  EXPECT_EQ(generator.status().pages_in_use, 0);
  EXPECT_EQ(generator.status().finished, 4U);
}

TEST(BatchLives, CallsThatAreTooLargeAreMadeSmaller) {
  WatchedModel model;
  std::vector<Ids> prompts;
  for (std::uint64_t i = 0; i < 4; ++i) prompts.push_back(random_ids(9, i));
  int refused = 0;
  model.watch = [&](const Ids& ids) {
    if (ids.size() == 4 && ++refused < 3) throw OutOfMemoryError("four rows are too many");
  };
  BatchGenerator generator(model);
  std::vector<Answer> answers(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) generator.submit(asking(prompts[i], 12, answers[i]));
  generator.run();
  EXPECT_GT(refused, 1);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(answers[i].ids, alone(model.inner(), prompts[i], 12)) << i;
}

TEST(BatchLives, AFailedDeviceEndsAllOnceAndTakesNoMore) {
  WatchedModel model;
  int calls = 0;
  model.watch = [&](const Ids&) {
    if (++calls > 4) throw DeviceError("the device is lost");
  };
  BatchGenerator generator(model, {.max_batch = 2});
  std::vector<Answer> answers(5);
  std::vector<RequestId> ids;
  for (std::size_t i = 0; i < answers.size(); ++i)
    ids.push_back(generator.submit(asking(random_ids(9, i), 20, answers[i])));
  generator.step();
  EXPECT_TRUE(generator.cancel(ids[4]));
  generator.run();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].ends, 1) << i;
    EXPECT_EQ(answers[i].last.finish, i == 4 ? FinishReason::cancelled : FinishReason::failed) << i;
    if (i != 4) {
      EXPECT_EQ(answers[i].last.error, "the device is lost");
    }
  }
  EXPECT_FALSE(generator.step());
  EXPECT_FALSE(generator.wait(0));
  EXPECT_EQ(generator.status().finished, 5U);
  EXPECT_EQ(generator.status().running + generator.status().waiting, 0);
  EXPECT_EQ(generator.status().pages_in_use, 0);
  Answer refused;
  EXPECT_THROW(generator.submit(asking({1}, 3, refused)), DeviceError);
  EXPECT_EQ(refused.ends, 0);
}

TEST(BatchLives, WhoIsCancelledEndsAsCancelledAndOnce) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 3});
  std::vector<Answer> answers(4);
  std::vector<RequestId> ids(4, 0);
  bool at_last_token = false, of_itself_at_end = true;
  for (std::size_t i = 0; i < 3; ++i) {
    GenerateRequest request = asking(random_ids(8, i), 6, answers[i]);
    const auto inner = request.on_event;
    if (i == 0)  // in the very step in which the second would have its last token
      request.on_event = [&, inner](const TokenEvent& event) {
        if (event.generated_tokens == 6) at_last_token = generator.cancel(ids[1]) && generator.cancel(ids[1]);
        return inner(event);
      };
    if (i == 2)
      request.on_event = [&, inner](const TokenEvent& event) {
        if (event.finish) of_itself_at_end = generator.cancel(event.request);
        return inner(event);
      };
    ids[i] = generator.submit(std::move(request));
  }
  ids[3] = generator.submit(asking(random_ids(8, 3), 6, answers[3]));  // waits
  generator.step();
  bool first = false, second = false;
  std::thread([&] {
    first = generator.cancel(ids[3]);
    second = generator.cancel(ids[3]);
  }).join();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
  generator.run();
  EXPECT_TRUE(at_last_token);
  EXPECT_FALSE(of_itself_at_end) << "its end was on its way";
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i].ends, 1) << i;
  EXPECT_EQ(answers[0].last.finish, FinishReason::length);
  EXPECT_EQ(answers[1].last.finish, FinishReason::cancelled);
  EXPECT_EQ(answers[2].last.finish, FinishReason::length);
  EXPECT_EQ(answers[3].last.finish, FinishReason::cancelled);
  for (const RequestId id : ids) EXPECT_FALSE(generator.cancel(id));
  EXPECT_EQ(generator.status().finished, 4U);
  EXPECT_EQ(generator.status().pages_in_use, 0);
}

TEST(BatchLives, CancelledFromManyThreadsAtAnyTime) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 3, .cache_positions = 96});
  constexpr std::size_t kRequests = 40;
  std::vector<Answer> answers(kRequests);
  std::vector<RequestId> ids;
  for (std::size_t i = 0; i < kRequests; ++i)
    ids.push_back(generator.submit(asking(random_ids(20, i), 12, answers[i])));
  std::vector<std::atomic<bool>> told(kRequests);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < kRequests; i += 2) {
        if (generator.cancel(ids[i])) told[i] = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  generator.run();
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kRequests; ++i) {
    EXPECT_EQ(answers[i].ends, 1) << i;
    EXPECT_EQ(answers[i].last.finish, told[i] ? FinishReason::cancelled : FinishReason::length) << i;
    EXPECT_EQ(answers[i].last.generated_tokens, std::ssize(answers[i].ids)) << i;
  }
  EXPECT_EQ(generator.status().pages_in_use, 0);
  EXPECT_EQ(generator.status().finished, kRequests);
}

TEST(BatchLives, TheSecondOfTwoPromptsTakesWhatTheFirstHasWritten) {
  Llama model(batch_config(), Device::cpu(), 3);
  const Ids shared = random_ids(100, 1);
  for (const bool reuse : {true, false}) {
    BatchGenerator generator(model, {.prefill_chunk = 64, .reuse_prefixes = reuse});
    std::vector<Answer> answers(3);
    std::vector<Ids> prompts(3, shared);
    prompts[1].push_back(7);
    prompts[2].resize(70);
    prompts[2].push_back(9);
    for (std::size_t i = 0; i < 3; ++i) generator.submit(asking(prompts[i], 8, answers[i]));
    generator.run();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i].ids, alone(model, prompts[i], 8)) << i;
    EXPECT_EQ(answers[0].last.reused_tokens, 0);
    EXPECT_EQ(answers[1].last.reused_tokens, reuse ? 96 : 0);
    EXPECT_EQ(answers[2].last.reused_tokens, reuse ? 64 : 0);
    const BatchStatus status = generator.status();
    EXPECT_EQ(status.reused_tokens, reuse ? 160U : 0U);
    EXPECT_EQ(status.prompt_tokens + status.reused_tokens, 100U + 101U + 71U);
    EXPECT_EQ(status.pages_in_use, 0);
  }
}

TEST(BatchLives, WhatIsReusedIsSaidAlsoAfterWaiting) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.cache_positions = 128});
  const Ids prompt = random_ids(83, 1);
  Answer first, second;
  generator.submit(asking(prompt, 10, first));
  generator.submit(asking(prompt, 10, second));  // there is no room for it yet
  generator.run();
  EXPECT_EQ(second.ids, first.ids);
  EXPECT_EQ(second.last.reused_tokens, 80);
  EXPECT_EQ(generator.status().reused_tokens, 80U);
}

TEST(BatchLives, CountersAfterPreemptionsAndCancels) {
  Llama model(batch_config(), Device::cpu(), 3);
  for (const bool reuse : {true, false}) {
    BatchGenerator generator(
        model, {.max_batch = 4, .max_context = 128, .cache_positions = 192, .reuse_prefixes = reuse});
    constexpr std::int64_t kRequests = 8, kPrompt = 37, kTokens = 80;
    std::vector<Answer> answers(kRequests);
    std::vector<RequestId> ids;
    for (std::size_t i = 0; i < answers.size(); ++i)
      ids.push_back(generator.submit(asking(random_ids(kPrompt, i), kTokens, answers[i])));
    int steps = 0;
    while (generator.step()) {
      if (++steps == 60) {
        EXPECT_TRUE(generator.cancel(ids[kRequests - 1]));
      }
      const BatchStatus status = generator.status();
      EXPECT_LE(status.pages_in_use + status.pages_reusable, status.pages);
      EXPECT_EQ(status.running + status.waiting + static_cast<std::int64_t>(status.finished), kRequests);
    }
    const BatchStatus status = generator.status();
    std::uint64_t drawn = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].ends, 1);
      EXPECT_EQ(answers[i].last.generated_tokens, std::ssize(answers[i].ids));
      drawn += answers[i].ids.size();
      if (i + 1 < answers.size()) {
        EXPECT_EQ(answers[i].ids, alone(model, random_ids(kPrompt, i), kTokens)) << i;
      }
    }
    EXPECT_EQ(status.generated_tokens, drawn);
    EXPECT_EQ(status.prompt_tokens + status.reused_tokens, (kRequests - 1) * kPrompt);
    EXPECT_GT(status.preempted, 0U);
    EXPECT_GT(status.recomputed_tokens, 0U);
    EXPECT_EQ(status.pages_in_use, 0);
    EXPECT_EQ(status.pages_reusable > 0, reuse);
    // Who comes back has room to grow: it is not sent away at once, and little is computed again.
    // Without room to grow in, 11 are sent away, and 342 and 726 tokens computed again.
    EXPECT_LE(status.preempted, 8U);
    EXPECT_LE(status.recomputed_tokens, reuse ? 250U : 600U);
  }
}

TEST(BatchLives, AnAdapterThatFailsChangesNothing) {
  const TempFolder folder;
  const Ids prompt = random_ids(9, 5);
  Ids expected;
  {
    Llama model(batch_config(), Device::cpu(), 3);
    apply_lora(model, {.rank = 3, .alpha = 8}, {"q_proj", "down_proj"}, 1);
    std::uint64_t seed = 10;
    for (const Parameter& p : model.trainable_parameters())
      *p.tensor = random_normal(p.tensor->shape(), seed++, DType::f32, Device::cpu()) * 0.5;
    model.materialize();
    save_adapter(model, folder.path() / "good");
    expected = alone(model, prompt, 12);
  }
  std::filesystem::copy(folder.path() / "good", folder.path() / "bad");
  std::filesystem::resize_file(folder.path() / "bad" / "adapter_model.safetensors", 200);
  Llama model(batch_config(), Device::cpu(), 3);
  const Ids plain = alone(model, prompt, 12);
  ASSERT_NE(plain, expected);
  const auto is_plain = [&] {
    bool all = true;
    model.visit_projections([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
      all = all && dynamic_cast<Linear*>(slot.get()) != nullptr;
    });
    return all;
  };
  BatchGenerator generator(model);
  EXPECT_THROW(generator.load_adapter("bad", folder.path() / "bad"), FileError);
  EXPECT_TRUE(is_plain());
  EXPECT_TRUE(generator.adapters().empty());
  generator.load_adapter("good", folder.path() / "good");
  for (const char* name : {"good", "bad"})
    EXPECT_THROW(generator.load_adapter(name, folder.path() / "bad"), FileError);
  EXPECT_EQ(generator.adapters(), (std::vector<std::string>{"good"}));
  Answer with, without;
  GenerateRequest request = asking(prompt, 12, with);
  request.adapter = "good";
  generator.submit(std::move(request));
  generator.submit(asking(prompt, 12, without));
  generator.run();
  EXPECT_EQ(with.ids, expected);
  EXPECT_EQ(without.ids, plain);
}

TEST(BatchLives, AdaptersAreLoadedUnderSteadyLoad) {
  const TempFolder folder;
  {
    Llama model(batch_config(), Device::cpu(), 3);
    apply_lora(model, {.rank = 2, .alpha = 8}, {"q_proj"}, 1);
    save_adapter(model, folder.path());
  }
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model);
  std::atomic<bool> done{false};
  std::atomic<int> steps{0};
  std::thread stepping([&] {
    while (!done) {
      if (generator.status().running + generator.status().waiting < 2) {
        GenerateRequest request;
        request.prompt = {1, 2, 3};
        generator.submit(std::move(request));
      }
      generator.step();
      ++steps;
    }
  });
  while (steps < 3) std::this_thread::yield();
  std::vector<int> waited;
  for (int i = 0; i < 11; ++i) {
    const int before = steps;
    generator.load_adapter("adapter", folder.path());
    waited.push_back(steps - before);
  }
  done = true;
  stepping.join();
  std::sort(waited.begin(), waited.end());
  EXPECT_LE(waited[5], 2) << "steps that went before, in the middle of eleven times";
}

}  // namespace
}  // namespace caldera::testing
