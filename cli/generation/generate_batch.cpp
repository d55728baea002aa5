#include "cli/generation/generate_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "cli/files/inputs.h"
#include "engine/base/error.h"

namespace caldera::cli {

std::vector<std::string> read_prompts(const std::filesystem::path& path) {
  std::istringstream lines(read_text_input(path.string()));
  std::vector<std::string> prompts;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (path.extension() != ".jsonl") {
      prompts.push_back(line);
      continue;
    }
    const auto value = nlohmann::json::parse(line, nullptr, false);
    const auto& text = value.is_object() && value.contains("prompt") ? value["prompt"] : value;
    if (!text.is_string())
      throw FileError(
          fmt::format("{}:{}: not a string, nor an object with \"prompt\"", path.string(), number));
    prompts.push_back(text.get<std::string>());
  }
  if (prompts.empty()) throw FileError(fmt::format("{}: no prompts; give it one a line", path.string()));
  return prompts;
}

nlohmann::ordered_json generate_batch(CausalLM& model, const std::vector<std::string>& prompts,
                                      const GenerateRequest& like, const DecodingFlags& decoding,
                                      const BatchLimits& limits) {
  struct Answer {
    std::vector<std::int32_t> prompt, ids;
    std::string text;
    std::vector<TokenReport> reports;
    TokenEvent last;
  };
  const Tokenizer& tokenizer = *like.text.tokenizer;
  std::vector<Answer> answers(prompts.size());
  BatchGenerator generator(model, limits);
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Answer& answer = answers[i];
    GenerateRequest request = like;
    request.prompt = answer.prompt = tokenizer.encode(prompts[i]);
    request.sampling.seed = like.sampling.seed + i;
    decoding.begin(request);
    request.on_event = [&answer, &tokens](const TokenEvent& event) {
      if (event.id) answer.ids.push_back(*event.id);
      if (event.id) ++tokens;
      if (event.report) answer.reports.push_back(*event.report);
      answer.text += event.text;
      answer.last = event;
      return true;
    };
    // The queue is bounded: the batch goes on until there is room.
    while (generator.status().waiting >= limits.max_queue && generator.step()) {
    }
    generator.submit(std::move(request));
  }
  generator.run();
  const double seconds =
      std::max(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 1e-9);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  std::int64_t full = 0;
  for (const Answer& answer : answers) {
    if (answer.last.finish == FinishReason::failed) throw Error(answer.last.error);
    results.push_back({{"prompt_ids", answer.prompt},
                       {"ids", answer.ids},
                       {"text", answer.text},
                       {"finish_reason", answer.last.finish == FinishReason::stop ? "stop" : "length"},
                       {"reused_tokens", answer.last.reused_tokens},
                       {"drafted_tokens", answer.last.drafted_tokens},
                       {"accepted_tokens", answer.last.accepted_tokens}});
    if (answer.last.finish == FinishReason::length && std::ssize(answer.ids) < like.max_tokens) ++full;
    if (like.logprobs) results.back()["logprobs"] = reports_json(answer.reports, &tokenizer);
  }
  if (full > 0)
    fmt::print(stderr, "of {} texts the model's positions were full before --max-tokens {}\n", full,
               like.max_tokens);
  return {{"results", results},
          {"generated_tokens", tokens},
          {"tokens_per_second", static_cast<double>(tokens) / seconds}};
}

}  // namespace caldera::cli
