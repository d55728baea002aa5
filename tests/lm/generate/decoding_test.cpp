// Everything that says how a text is decoded, together: drafts, constraints, stop strings, log-probabilities
// and adapters, one text at a time and in batches.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/caldera.h"
#include "lm/adapters/lora.h"
#include "tests/lm/generate/decoding_roads.h"
#include "tests/support/devices.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

constexpr const char* kSchema =
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},)"
    R"("tags": {"type": "array", "items": {"enum": ["the", "xyz", "ab"]}, "minItems": 2, "maxItems": 5}},)"
    R"("required": ["name", "tags"], "additionalProperties": false})";

const std::shared_ptr<const Tokenizer>& letters() {
  static const std::shared_ptr<const Tokenizer> kLetters = std::make_shared<LetterTokenizer>();
  return kLetters;
}

std::shared_ptr<TokenConstraint> schema_constraint() {
  static const Grammar kGrammar =
      Grammar::json_schema(kSchema, tokenizer_vocabulary(*letters(), {LetterTokenizer::kEnd}));
  return kGrammar.constraint();
}

const Ids kPrompt = random_ids(23, 4, 60);

/// A way of drafting: what makes the drafter of one text, knowing what the text becomes without.
struct Way {
  std::string name;
  std::function<std::shared_ptr<Drafter>(const SamplingOptions&, const Ids& answer)> make;
};

class Decoding : public ::testing::TestWithParam<Device> {
 protected:
  Decoding()
      : model(batch_config(), GetParam(), 3),
        twin(batch_config(), GetParam(), 3),
        other(batch_config(), GetParam(), 8) {}

  std::vector<Way> ways() {
    return {{"look-up", [](const auto&, const Ids&) { return std::make_shared<LookupDrafter>(); }},
            {"another model", [this](const SamplingOptions& s,
                                     const Ids&) { return std::make_shared<ModelDrafter>(other, s); }},
            {"the same model", [this](const SamplingOptions& s,
                                      const Ids&) { return std::make_shared<ModelDrafter>(twin, s); }},
            {"wrong",
             [](const auto&, const Ids&) {
               return std::make_shared<FixedDrafter>(Ids{60, 7, 60, 60});
             }},
            {"right and wrong", [](const auto&, const Ids& answer) {
               return std::make_shared<KnowingDrafter>(kPrompt, answer, 5);
             }}};
  }
  /// Holds the text on both roads, without a drafter and with each, to `expected`.
  void expect_everywhere(const std::function<DecodingOptions()>& ask, const Told& expected);

  Llama model, twin, other;
};

void expect_told(const Told& told, const Told& expected, const std::string& where) {
  EXPECT_EQ(told.ids, expected.ids) << where;
  EXPECT_EQ(told.text, expected.text) << where;
  EXPECT_EQ(told.finish, expected.finish) << where;
  EXPECT_EQ(told.stop, expected.stop) << where;
  EXPECT_LE(told.accepted, told.drafted) << where;
  ASSERT_EQ(told.reports.size(), expected.reports.size()) << where;
  for (std::size_t t = 0; t < expected.reports.size(); ++t) {
    const TokenReport &a = told.reports[t], &b = expected.reports[t];
    EXPECT_EQ(a.drawn.id, b.drawn.id) << where << ", " << t;
    EXPECT_NEAR(a.drawn.log_probability, b.drawn.log_probability, 1e-4) << where << ", " << t;
    ASSERT_EQ(a.top.size(), b.top.size());
    for (std::size_t k = 0; k < b.top.size(); ++k) {
      EXPECT_NEAR(a.top[k].log_probability, b.top[k].log_probability, 1e-4) << where << ", " << t;
    }
  }
}

void Decoding::expect_everywhere(const std::function<DecodingOptions()>& ask, const Told& expected) {
  std::vector<Way> all = ways();
  all.insert(all.begin(), {"no drafter", nullptr});
  std::vector<DecodingOptions> options;
  for (const Way& way : all) {
    options.push_back(ask());
    if (way.make) options.back().drafter = way.make(options.back().sampling, expected.ids);
    const Told told = generated(model, kPrompt, options.back());
    expect_told(told, expected, way.name);
    if (!way.make) {
      EXPECT_EQ(told.drafted, 0);
    } else if (way.name != "look-up" && expected.ids.size() > 1) {  // the look-up may find nothing
      EXPECT_GT(told.drafted, 0) << way.name;
    }
    // At a stop within a draft what follows was guessed for nothing.
    if (way.name == "the same model" && !options.back().constraint && options.back().min_tokens == 0) {
      EXPECT_GE(told.accepted, told.drafted - options.back().draft_tokens);
    }
  }
  BatchGenerator generator(model);
  std::vector<Told> together(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    DecodingOptions again = ask();
    if (all[i].make) again.drafter = all[i].make(again.sampling, expected.ids);
    submit(generator, kPrompt, again, together[i]);
  }
  generator.run();
  for (std::size_t i = 0; i < all.size(); ++i)
    expect_told(together[i], expected, all[i].name + ", in a batch");
}

TEST_P(Decoding, GreedyTextsAreTheSameWithEveryDrafter) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  DecodingOptions plain;
  plain.max_tokens = 40;
  plain.text.tokenizer = letters();
  const Told expected = generated(model, kPrompt, plain);
  EXPECT_EQ(expected.ids, alone(model, kPrompt, 40));
  EXPECT_EQ(expected.text, letters()->decode(expected.ids));
  expect_everywhere([&] { return plain; }, expected);
}

TEST_P(Decoding, AConstraintHoldsWithEveryDrafter) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  const auto ask = [] {
    DecodingOptions options;
    options.max_tokens = 150;
    options.text.tokenizer = letters();
    options.stop_ids = {LetterTokenizer::kEnd};
    options.constraint = schema_constraint();
    return options;
  };
  const Told expected = generated(model, kPrompt, ask());
  // By hand: the most likely token that the schema allows, by passes without a cache.
  Ids ids = kPrompt;
  const auto constraint = schema_constraint();
  for (const std::int32_t id : expected.ids) {
    const std::vector<float> logits = model.forward(model.make_ids(ids)).to_vector<float>();
    const TokenSet allowed = constraint->allowed();
    std::int32_t best = -1;
    for (std::int32_t i = 0; i < 61; ++i)
      if (contains(allowed, i) &&
          (best < 0 || logits[logits.size() - 61 + static_cast<std::size_t>(i)] >
                           logits[logits.size() - 61 + static_cast<std::size_t>(best)]))
        best = i;
    ASSERT_EQ(id, best) << ids.size();
    constraint->accept(id);
    ids.push_back(id);
  }
  EXPECT_EQ(expected.finish, FinishReason::stop);
  const auto value = nlohmann::json::parse(expected.text);
  EXPECT_LE(value["name"].get<std::string>().size(), 12U);
  EXPECT_GE(value["tags"].size(), 2U);
  expect_everywhere(ask, expected);
}

TEST_P(Decoding, AStopStringEndsTheTextWithEveryDrafter) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  DecodingOptions plain;
  plain.max_tokens = 40;
  plain.text.tokenizer = letters();
  const Told whole = generated(model, kPrompt, plain);
  // Strings that begin and end within tokens, and one that never comes.
  for (const std::size_t at : {5U, 13U, 22U}) {
    for (const std::size_t length : {1U, 4U}) {
      DecodingOptions options = plain;
      options.text.stop = {"\n", whole.text.substr(at, length)};
      const std::string& stop = options.text.stop[1];
      const Told expected = generated(model, kPrompt, options);
      EXPECT_EQ(expected.text, whole.text.substr(0, whole.text.find(stop)));
      EXPECT_EQ(expected.stop, stop);
      EXPECT_EQ(expected.finish, FinishReason::stop);
      // Not a token more than it takes.
      const std::string decoded = letters()->decode(expected.ids);
      EXPECT_NE(decoded.find(stop), std::string::npos);
      EXPECT_EQ(letters()->decode(std::span(expected.ids).first(expected.ids.size() - 1)).find(stop),
                std::string::npos);
      expect_everywhere([&] { return options; }, expected);
    }
  }
}

TEST_P(Decoding, ATextHasItsLeastTokensWithEveryDrafter) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  DecodingOptions free;
  free.max_tokens = 30;
  free.text.tokenizer = letters();
  const Told whole = generated(model, kPrompt, free);
  DecodingOptions options = free;
  options.stop_ids = {whole.ids[3]};
  options.text.stop = {whole.text.substr(0, 2)};
  options.min_tokens = 8;
  // In two parts: without the stop token at all, then as usual.
  DecodingOptions first = free;
  first.max_tokens = 8;
  first.sampling.logit_bias = {{whole.ids[3], -std::numeric_limits<float>::infinity()}};
  const Told begin = generated(model, kPrompt, first);
  ASSERT_EQ(begin.ids.size(), 8U);
  Ids prompt = kPrompt;
  prompt.insert(prompt.end(), begin.ids.begin(), begin.ids.end());
  DecodingOptions second = options;
  second.min_tokens = 0;
  second.max_tokens = 22;
  const Told end = generated(model, prompt, second);
  const Told expected = generated(model, kPrompt, options);
  Ids ids = begin.ids;
  ids.insert(ids.end(), end.ids.begin(), end.ids.end());
  EXPECT_EQ(expected.ids, ids);
  EXPECT_TRUE(expected.text.starts_with(options.text.stop[0]));
  expect_everywhere([&] { return options; }, expected);
  // What a constraint ends is ended.
  options.constraint =
      Grammar({{{GrammarPart::Kind::text, "ab"}}}, tokenizer_vocabulary(*letters(), {LetterTokenizer::kEnd}))
          .constraint();
  options.stop_ids = {LetterTokenizer::kEnd};
  EXPECT_EQ(generated(model, kPrompt, options).text, "ab");
}

TEST_P(Decoding, LogProbabilitiesAreTheModelsWithEveryDrafter) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  DecodingOptions options;
  options.max_tokens = 30;
  options.logprobs = 4;
  options.sampling.repetition_penalty = 1.2;  // changes the text, not what is reported
  const Told expected = generated(model, kPrompt, options);
  ASSERT_EQ(expected.reports.size(), 30U);
  Ids all = kPrompt;
  all.insert(all.end(), expected.ids.begin(), expected.ids.end());
  const std::vector<float> oracle = log_softmax(model.forward(model.make_ids(all)), -1).to_vector<float>();
  for (std::size_t t = 0; t < 30; ++t) {
    const auto row = std::span(oracle).subspan((kPrompt.size() - 1 + t) * 61, 61);
    EXPECT_NEAR(expected.reports[t].drawn.log_probability, row[static_cast<std::size_t>(expected.ids[t])],
                1e-4);
    EXPECT_NEAR(expected.reports[t].top[0].log_probability, *std::ranges::max_element(row), 1e-4);
  }
  expect_everywhere([&] { return options; }, expected);
}

TEST_P(Decoding, AllTogether) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  const auto ask = [] {
    DecodingOptions options;
    options.max_tokens = 150;
    options.text.tokenizer = letters();
    options.text.stop = {"\", \"ta", "tags\":"};  // within the schema's document
    options.stop_ids = {LetterTokenizer::kEnd};
    options.constraint = schema_constraint();
    options.logprobs = 2;
    return options;
  };
  const Told expected = generated(model, kPrompt, ask());
  ASSERT_TRUE(expected.stop.has_value());
  EXPECT_NE(expected.text.find("\"name\":"), std::string::npos) << expected.text;
  EXPECT_EQ(expected.text.find("tags\":"), std::string::npos);
  EXPECT_EQ(expected.reports.size(), expected.ids.size());
  expect_everywhere(ask, expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, Decoding, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(DecodingTogether, EachOfABatchGetsWhatItGetsAlone) {
  const TempFolder folder;
  Llama model(batch_config(), Device::cpu(), 3), other(batch_config(), Device::cpu(), 8);
  {
    Llama adapted(batch_config(), Device::cpu(), 3);
    apply_lora(adapted, {.rank = 3, .alpha = 8}, {"q_proj", "down_proj"}, 1);
    std::uint64_t seed = 10;
    for (const Parameter& p : adapted.trainable_parameters())
      *p.tensor = random_normal(p.tensor->shape(), seed++, DType::f32, Device::cpu()) * 0.5;
    adapted.materialize();
    save_adapter(adapted, folder.path());
  }
  BatchGenerator generator(model, {.max_batch = 6, .prefill_chunk = 32});
  generator.load_adapter("tuned", folder.path());
  const auto ask = [&](std::size_t i) {
    DecodingOptions options;
    options.max_tokens = 60;
    options.text.tokenizer = letters();
    options.stop_ids = {LetterTokenizer::kEnd};
    if (i % 2 == 0) options.drafter = std::make_shared<LookupDrafter>();
    if (i % 4 == 1) options.drafter = std::make_shared<ModelDrafter>(other, options.sampling);
    if (i % 3 == 0) options.constraint = schema_constraint();
    if (i % 5 < 2) options.text.stop = {"a", "ta"};
    if (i % 7 < 3) options.logprobs = 1;
    options.draft_tokens = 1 + static_cast<std::int64_t>(i % 6);
    return options;
  };
  constexpr std::size_t kRequests = 24;
  std::vector<Told> alone(kRequests), together(kRequests);
  for (std::vector<Told>* all : {&alone, &together}) {
    for (std::size_t i = 0; i < kRequests; ++i) {
      const Ids prompt = random_ids(5 + static_cast<std::int64_t>(i), i % 9, 60);
      submit(generator, prompt, ask(i), (*all)[i], i % 8 > 4 ? "tuned" : "");
      if (all == &alone) generator.run();
    }
    generator.run();
  }
  bool stops = false, drafts = false;
  for (std::size_t i = 0; i < kRequests; ++i) {
    expect_told(together[i], alone[i], std::to_string(i));
    stops = stops || together[i].stop;
    drafts = drafts || together[i].accepted > 0;
  }
  EXPECT_TRUE(stops);
  EXPECT_TRUE(drafts);
  EXPECT_EQ(generator.status().pages_in_use, 0);
}

/// Allows ids of one parity, in turns.
class Alternating final : public TokenConstraint {
 public:
  TokenSet allowed() override {
    set_ = {odd_ ? 0b0101010ULL : 0b1010101ULL};
    return set_;
  }
  void accept(std::int32_t id) override {
    if (!contains(allowed(), id)) throw ValueError("not allowed");
    odd_ = !odd_;
  }
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Alternating>(*this); }

 private:
  bool odd_ = false;
  std::vector<std::uint64_t> set_;
};

/// Under a constraint the draws are those of plain sampling too, whatever a drafter guesses that may not
/// come.
TEST(DecodingTogether, DrawsUnderAConstraintHaveTheSameDistribution) {
  ModelConfig config = batch_config();
  config.num_hidden_layers = 1;
  config.vocab_size = 7;
  Llama model(config, Device::cpu(), 7), small(config, Device::cpu(), 9);
  const Ids prompt{3, 1, 4, 1, 5};
  const auto pairs = [&](int drafter, bool batch) {
    std::map<std::int32_t, int> counts;
    BatchGenerator generator(model, {.max_batch = 16, .max_queue = 2000});
    std::vector<Told> told(1000);
    for (std::uint64_t seed = 0; seed < told.size(); ++seed) {
      DecodingOptions options;
      options.max_tokens = 3;
      options.draft_tokens = 2;
      options.constraint = std::make_shared<Alternating>();
      options.sampling = {.temperature = 1.3,
                          .seed = seed + 5000 * static_cast<std::uint64_t>(drafter + 3 * batch)};
      if (drafter == 1) options.drafter = std::make_shared<ModelDrafter>(small, options.sampling);
      if (drafter == 2)
        options.drafter = std::make_shared<FixedDrafter>(Ids{5, 3});  // the second may not come
      if (batch)
        submit(generator, prompt, options, told[seed]);
      else
        told[seed] = generated(model, prompt, options);
    }
    generator.run();
    for (const Told& one : told) {
      EXPECT_EQ(one.ids.size(), 3U);
      EXPECT_EQ(one.ids[1] % 2, 1);
      EXPECT_EQ(one.ids[2] % 2, 0);
      ++counts[one.ids[1] * 7 + one.ids[2]];
    }
    return counts;
  };
  const auto plain = pairs(0, false);
  for (const bool batch : {false, true}) {
    for (const int drafter : {1, 2}) {
      const auto drafted = pairs(drafter, batch);
      // Pearson's statistic of two samples of equal size.
      double sum = 0, degrees = -1;
      for (std::int32_t pair = 0; pair < 49; ++pair) {
        const double x = plain.count(pair) != 0 ? plain.at(pair) : 0;
        const double y = drafted.count(pair) != 0 ? drafted.at(pair) : 0;
        if (x + y < 10) continue;  // too few to say anything of
        sum += (x - y) * (x - y) / (x + y);
        ++degrees;
      }
      ASSERT_GT(degrees, 5);
      // Wilson and Hilferty 1931: the chance to exceed it is 1 in 10^5.
      const double cube = 1 - 2 / (9 * degrees) + 4.26 * std::sqrt(2 / (9 * degrees));
      EXPECT_LT(sum, degrees * cube * cube * cube) << "drafter " << drafter << ", degrees " << degrees;
    }
  }
}

TEST(DecodingTogether, AReceiverThatHasEnoughGetsTheRestOfTheText) {
  Llama model(batch_config(), Device::cpu(), 3);
  GenerateOptions options;
  options.max_tokens = 40;
  options.text.tokenizer = letters();
  const std::string whole = generate(model, kPrompt, options).text;
  options.text.stop = {whole.substr(6, 3) + "\n"};  // never comes, though it begins
  int tokens = 0;
  options.on_token = [&](std::int32_t) { return ++tokens < 30; };
  const Generation result = generate(model, kPrompt, options);
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
  EXPECT_EQ(result.ids.size(), 30U);
  EXPECT_EQ(result.text, letters()->decode(result.ids));
}

}  // namespace
}  // namespace caldera::testing
