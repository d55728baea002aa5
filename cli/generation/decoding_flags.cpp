#include "cli/generation/decoding_flags.h"

#include <algorithm>

#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "lm/base/atomic_file.h"
#include "lm/generate/grammar/tokenizer_vocabulary.h"

namespace caldera::cli {
namespace {

nlohmann::ordered_json report_json(const TokenLogProbability& token, const Tokenizer* tokenizer) {
  constexpr double kRuledOut = -9999;  // JSON has no -infinity; this is OpenAI's number for it
  nlohmann::ordered_json entry{{"id", token.id}, {"token", nullptr}};
  if (tokenizer != nullptr) entry["token"] = tokenizer->decode({&token.id, 1}, false);
  entry["logprob"] = std::max(token.log_probability, kRuledOut);
  return entry;
}

}  // namespace

void DecodingFlags::declare(Arguments& args) {
  args.option(
          "--json-schema", schema_,
          "File with a JSON schema: the text is a document that it allows, unless --max-tokens cuts it off")
      .type_name("FILE");
  args.option("--stop", stop_, "String that ends the text, and is not part of it (repeatable)")
      .type_name("STRING")
      .repeatable();
  args.option("--logprobs", logprobs_,
              "With --json: tell the log-probability of each token, and those of the N most likely ones")
      .type_name("N")
      .check(integer_in(0, 1000));
  speculation_flags_.declare(args);
}

void DecodingFlags::check(bool json) const {
  if (logprobs_ && !json) throw UsageError("--logprobs: log-probabilities are told with --json alone");
  if (std::ranges::count(stop_, "") > 0) throw UsageError("--stop: an empty string is everywhere");
}

void DecodingFlags::prepare(const CausalLM& model, const std::shared_ptr<const Tokenizer>& tokenizer,
                            DecodingOptions& options) {
  options.logprobs = logprobs_;
  options.text.tokenizer = tokenizer;
  options.text.stop = stop_;
  speculation_.emplace(model, speculation_flags_.options());
  options.draft_tokens = speculation_->options().tokens;
  if (tokenizer == nullptr && !stop_.empty()) throw ValueError("--stop: the model has no tokenizer");
  if (schema_.empty()) return;
  if (tokenizer == nullptr) throw ValueError("--json-schema: the model has no tokenizer");
  const std::string schema = read_text_file(schema_);
  try {
    grammar_ = Grammar::json_schema(schema, tokenizer_vocabulary(*tokenizer, options.stop_ids));
  } catch (const ValueError& error) {
    throw ValueError("--json-schema: " + schema_ + ": " + error.what());
  }
}

void DecodingFlags::begin(DecodingOptions& options) const {
  options.drafter = speculation_->drafter(options.sampling);
  if (grammar_) options.constraint = grammar_->constraint();
}

nlohmann::ordered_json reports_json(const std::vector<TokenReport>& reports, const Tokenizer* tokenizer) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const TokenReport& report : reports) {
    nlohmann::ordered_json entry = report_json(report.drawn, tokenizer);
    entry["top_logprobs"] = nlohmann::ordered_json::array();
    for (const TokenLogProbability& other : report.top)
      entry["top_logprobs"].push_back(report_json(other, tokenizer));
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace caldera::cli
