#include "lm/generate/batch/batch_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/lora.h"
#include "lm/models/causal_lm.h"
#include "lm/models/registry.h"
#include "tests/lm/generate/batch_requests.h"
#include "tests/support/devices.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_data.h"

namespace caldera::testing {
namespace {

class BatchGeneratorTest : public ::testing::TestWithParam<Device> {};

TEST_P(BatchGeneratorTest, EveryRequestGetsWhatItGetsAlone) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  Llama model(batch_config(), GetParam(), 3);
  const std::vector<std::int64_t> prompts{1, 7, 70, 33, 16, 2, 100};
  const std::vector<std::int64_t> tokens{20, 9, 30, 40, 1, 50, 12};
  BatchGenerator generator(model, {.max_batch = 4, .prefill_chunk = 64});
  std::vector<Answer> answers(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    generator.submit(asking(random_ids(prompts[i], i), tokens[i], answers[i]));
    if (i > 2) generator.step();  // the later ones join a batch that runs
  }
  generator.run();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(answers[i].ids, alone(model, random_ids(prompts[i], i), tokens[i])) << i;
    EXPECT_EQ(answers[i].ends, 1) << i;
    EXPECT_EQ(answers[i].last.finish, FinishReason::length) << i;
    EXPECT_EQ(answers[i].last.prompt_tokens, prompts[i]);
    EXPECT_EQ(answers[i].last.generated_tokens, tokens[i]);
  }
  const BatchStatus status = generator.status();
  EXPECT_EQ(status.running, 0);
  EXPECT_EQ(status.pages_in_use, 0);
  EXPECT_EQ(status.finished, prompts.size());
}

TEST_P(BatchGeneratorTest, AnAdapterOfEachRow) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  const testing::TempFolder folder;
  const std::vector<std::string> names{"", "one", "two"};
  std::vector<Ids> expected;
  const Ids prompt = random_ids(9, 5);
  for (const std::string& name : names) {  // each alone
    Llama model(batch_config(), GetParam(), 3);
    if (!name.empty()) {
      apply_lora(model, {.rank = name == "one" ? 2 : 5, .alpha = 8}, {"q_proj", "down_proj"}, 1);
      std::uint64_t seed = name == "one" ? 10 : 50;
      for (const Parameter& p : model.trainable_parameters())
        *p.tensor = random_normal(p.tensor->shape(), seed++, DType::f32, GetParam()) * 0.5;
      model.materialize();
      save_adapter(model, folder.path() / name);
    }
    expected.push_back(alone(model, prompt, 12));
  }
  ASSERT_NE(expected[0], expected[1]);
  ASSERT_NE(expected[1], expected[2]);

  Llama model(batch_config(), GetParam(), 3);
  {
    BatchGenerator generator(model);
    std::vector<Answer> answers(6);
    EXPECT_THROW(generator.submit({.prompt = prompt, .adapter = "one"}), ValueError);
    for (const char* name : {"one", "two"}) generator.load_adapter(name, folder.path() / name);
    EXPECT_EQ(generator.adapters(), (std::vector<std::string>{"one", "two"}));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      GenerateRequest request = asking(prompt, 12, answers[i]);
      request.adapter = names[i % 3];
      generator.submit(std::move(request));
    }
    generator.step();
    generator.unload_adapter("one");  // its requests go on
    EXPECT_THROW(generator.submit({.prompt = prompt, .adapter = "one"}), ValueError);
    generator.run();
    for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].ids, expected[i % 3]) << i;
  }
  EXPECT_EQ(alone(model, prompt, 12), expected[0]) << "the model is as it was";
}

TEST_P(BatchGeneratorTest, SixteenBits) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  Llama model(batch_config(), GetParam(), 3);
  model.set_dtype(DType::bf16);
  BatchGenerator generator(model, {.max_batch = 4});
  EXPECT_EQ(BatchGenerator::bytes_per_position(model), 2 * 2 * 2 * 8 * 2);
  std::vector<Answer> answers(3);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    GenerateRequest request = asking(random_ids(10 + 7 * static_cast<std::int64_t>(i), i), 12, answers[i]);
    request.logprobs = 0;
    generator.submit(std::move(request));
  }
  generator.run();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Ids all = random_ids(10 + 7 * static_cast<std::int64_t>(i), i);
    const std::size_t prompt = all.size();
    all.insert(all.end(), answers[i].ids.begin(), answers[i].ids.end());
    const LazyTensor logits = astype(model.forward(model.make_ids(all)), DType::f32);
    const std::vector<float> expected = log_softmax(logits, -1).to_vector<float>();
    for (std::size_t t = 0; t < 12; ++t)
      EXPECT_NEAR(answers[i].logprobs[t],
                  expected[(prompt - 1 + t) * 61 + static_cast<std::size_t>(answers[i].ids[t])], 0.1);
  }
}

TEST(BatchGenerator, ThePromptsBeginningIsTakenFromTheCache) {
  Llama model(batch_config(), Device::cpu(), 3);
  const Ids shared = random_ids(83, 1);
  BatchGenerator generator(model, {.max_batch = 2});
  std::vector<Answer> answers(4);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Ids prompt = shared;
    if (i != 1) prompt.insert(prompt.end(), {static_cast<std::int32_t>(i), 7});
    generator.submit(asking(prompt, 10, answers[i]));
    generator.run();
    EXPECT_EQ(answers[i].ids, alone(model, prompt, 10)) << i;
    EXPECT_EQ(answers[i].last.reused_tokens, i == 0 ? 0 : 80) << i;  // whole pages of 16
  }
  EXPECT_EQ(generator.status().reused_tokens, 240U);
  EXPECT_EQ(generator.status().pages_in_use, 0);

  // What one generated is a beginning for the next turn of a conversation.
  Ids turn = shared;
  turn.insert(turn.end(), {0, 7});
  turn.insert(turn.end(), answers[0].ids.begin(), answers[0].ids.end());
  turn.push_back(5);
  Answer next;
  generator.submit(asking(turn, 10, next));
  generator.run();
  EXPECT_EQ(next.last.reused_tokens, 80);  // 94 of them are known: five whole pages
  EXPECT_EQ(next.ids, alone(model, turn, 10));
}

TEST(BatchGenerator, PagesAreShortAndEveryoneStillGetsWhatIsDue) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 4, .max_context = 128, .cache_positions = 192});
  std::vector<Answer> answers(6);
  for (std::size_t i = 0; i < answers.size(); ++i)
    generator.submit(asking(random_ids(40, i), 70, answers[i]));
  generator.run();
  for (std::size_t i = 0; i < answers.size(); ++i)
    EXPECT_EQ(answers[i].ids, alone(model, random_ids(40, i), 70)) << i;
  EXPECT_GT(generator.status().preempted, 0U);
  EXPECT_EQ(generator.status().pages_in_use, 0);
}

TEST(BatchGenerator, CancelledRequestsLeaveAndFreeTheirPages) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 2, .max_queue = 2, .reuse_prefixes = false});
  std::vector<Answer> answers(4);
  std::vector<RequestId> ids;
  for (std::size_t i = 0; i < 4; ++i)
    ids.push_back(generator.submit(asking(random_ids(20, i), 50, answers[i])));
  Answer refused;
  EXPECT_THROW(generator.submit(asking({1}, 5, refused)), QueueFull);
  EXPECT_TRUE(generator.wait(0));
  for (int i = 0; i < 3; ++i) generator.step();
  EXPECT_GT(generator.status().pages_in_use, 0);
  EXPECT_TRUE(generator.cancel(ids[0]));  // it runs
  EXPECT_TRUE(generator.cancel(ids[3]));  // it waits
  EXPECT_FALSE(generator.cancel(99));
  generator.run();
  EXPECT_EQ(answers[0].last.finish, FinishReason::cancelled);
  EXPECT_EQ(answers[3].last.finish, FinishReason::cancelled);
  EXPECT_TRUE(answers[3].ids.empty());
  EXPECT_FALSE(generator.cancel(ids[0]));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i].ends, 1) << i;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    EXPECT_EQ(answers[i].ids, alone(model, random_ids(20, i), 50));
  EXPECT_EQ(generator.status().pages_in_use, 0);
  EXPECT_FALSE(generator.wait(0));
}

TEST(BatchGenerator, ReceiversStopTokensAndFaults) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model);
  const Ids prompt = random_ids(12, 1);
  const Ids usual = alone(model, prompt, 8);
  Answer stopped, enough, none;
  GenerateRequest request = asking(prompt, 8, stopped);
  request.stop_ids = {usual[3]};
  generator.submit(request);
  request = asking(prompt, 8, enough);
  request.on_event = [&](const TokenEvent& event) {
    enough.ids.push_back(*event.id);
    return enough.ids.size() < 2;
  };
  generator.submit(request);
  generator.submit(asking(prompt, 0, none));
  generator.run();
  EXPECT_EQ(stopped.last.finish, FinishReason::stop);
  EXPECT_EQ(stopped.ids, Ids(usual.begin(), std::find(usual.begin(), usual.end(), usual[3]) + 1));
  EXPECT_EQ(enough.ids.size(), 2U);
  EXPECT_EQ(none.last.finish, FinishReason::length);
  EXPECT_EQ(none.ends, 1);
  EXPECT_THROW(generator.submit({}), ValueError);
  EXPECT_THROW(generator.submit({.prompt = {61}}), ValueError);
  EXPECT_THROW(generator.submit({.prompt = random_ids(257, 1)}), ValueError);
  for (const auto& spoil : std::vector<std::function<void(GenerateRequest&)>>{
           [](GenerateRequest& r) { r.max_tokens = -1; }, [](GenerateRequest& r) { r.draft_tokens = -1; },
           [](GenerateRequest& r) { r.sampling.temperature = -1; },
           [](GenerateRequest& r) { r.logprobs = 62; },
           [](GenerateRequest& r) { r.text.stop = {"no tokenizer"}; }}) {
    GenerateRequest spoilt;
    spoilt.prompt = {1};
    spoil(spoilt);
    EXPECT_THROW(generator.submit(std::move(spoilt)), ValueError);
  }
  EXPECT_THROW(generator.unload_adapter("none"), ValueError);
  Answer unasked;
  GenerateRequest lost = asking({1}, 1, unasked);
  lost.adapter = "none";
  EXPECT_THROW(generator.submit(std::move(lost)), UnknownAdapter);
}

TEST(BatchGenerator, DrawsOfASeedAndLogProbabilitiesAreThoseOfTheRequestAlone) {
  Llama model(batch_config(), Device::cpu(), 3);
  std::vector<Answer> alone(5), together(5);
  BatchGenerator generator(model);
  for (std::vector<Answer>* answers : {&alone, &together}) {
    for (std::size_t i = 0; i < answers->size(); ++i) {
      GenerateRequest request =
          asking(random_ids(5 + 9 * static_cast<std::int64_t>(i), i), 15, (*answers)[i]);
      request.sampling = {.temperature = i == 0 ? 0.0 : 1.5, .top_k = 20, .seed = i};
      request.logprobs = 3;
      generator.submit(std::move(request));
      if (answers == &alone) generator.run();
    }
    generator.run();
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].ids, together[i].ids) << i;
    ASSERT_EQ(alone[i].logprobs.size(), 15U);
    EXPECT_EQ(together[i].last.report->top.size(), 3U);
    for (std::size_t t = 0; t < 15; ++t) {
      EXPECT_LT(alone[i].logprobs[t], 0);
      // Of f32 logits whose sums are in another order: relative, as the logits' own error is.
      const double allowed = 1e-5 * (1 + std::abs(alone[i].logprobs[t]));
      EXPECT_NEAR(alone[i].logprobs[t], together[i].logprobs[t], allowed) << i << ", " << t;
    }
  }
}

TEST(BatchGenerator, IsAskedFromManyThreads) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 4, .max_queue = 3, .cache_positions = 96});
  std::atomic<int> ended{0};
  std::atomic<bool> done{false};
  std::thread stepping([&] {
    while (!done)
      if (generator.wait(0.01)) generator.step();
  });
  constexpr int kThreads = 3, kRequests = 8;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests;) {
        GenerateRequest request;
        request.prompt = random_ids(5 + 3 * i, static_cast<std::uint64_t>(t));
        request.max_tokens = 10;
        request.on_event = [&](const TokenEvent& event) {
          if (event.finish) ++ended;
          return true;
        };
        try {
          const RequestId id = generator.submit(std::move(request));
          if (i++ % 3 == 0) generator.cancel(id);
        } catch (const QueueFull&) {
          std::this_thread::yield();
        }
        EXPECT_LE(generator.status().pages_in_use, 6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (generator.status().running + generator.status().waiting > 0) std::this_thread::yield();
  done = true;
  stepping.join();
  EXPECT_EQ(ended, kThreads * kRequests);
  EXPECT_EQ(generator.status().finished, static_cast<std::uint64_t>(kThreads * kRequests));
  EXPECT_EQ(generator.status().pages_in_use, 0);
}

TEST(BatchGenerator, Stories) {
  CALDERA_REQUIRE_DATA(folder, "stories260K");
  const auto model = load_causal_lm(folder, Device::cpu());
  const std::vector<Ids> prompts{
      {1, 403, 407, 261, 378}, {1}, {1, 400, 300, 20, 30}, random_ids(150, 2, 512)};
  BatchGenerator generator(*model);
  std::vector<Answer> answers(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    GenerateRequest request = asking(prompts[i], 120, answers[i]);
    request.logprobs = 0;
    generator.submit(std::move(request));
  }
  generator.run();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(answers[i].ids, alone(*model, prompts[i], 120)) << i;
    // Log-probabilities by one pass without a cache.
    Ids all = prompts[i];
    all.insert(all.end(), answers[i].ids.begin(), answers[i].ids.end());
    const std::vector<float> expected =
        log_softmax(model->forward(model->make_ids(all)), -1).to_vector<float>();
    for (std::size_t t = 0; t < answers[i].ids.size(); ++t)
      EXPECT_NEAR(answers[i].logprobs[t],
                  expected[(prompts[i].size() - 1 + t) * 512 + static_cast<std::size_t>(answers[i].ids[t])],
                  1e-5)
          << i << ", " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchGeneratorTest, ::testing::ValuesIn(tested_devices()),
                         device_test_name);

}  // namespace
}  // namespace caldera::testing
