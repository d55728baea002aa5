// caldera chat: a conversation with a model in the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/chat/answer_printer.h"
#include "cli/chat/interrupts.h"
#include "cli/chat/line_reader.h"
#include "cli/files/inputs.h"
#include "cli/generation/decoding_flags.h"
#include "lm/base/atomic_file.h"
#include "lm/chat/conversation.h"
#include "lm/formats/config/generation_config.h"
#include "lm/generate/batch/batch_generator.h"
#include "lm/generate/generator.h"
#include "lm/tokenizers/sources/load_tokenizer.h"

namespace caldera::cli {
namespace {

constexpr const char* kHelp =
    "/system TEXT   start again with these instructions (none: without any)\n"
    "/reset         forget the conversation, keep the instructions\n"
    "/retry         answer the last message once more\n"
    "/undo          take the last message and its answer back\n"
    "/save FILE     write the conversation, as JSON\n"
    "/load FILE     go on from one\n"
    "/exit          or Ctrl-D; Ctrl-C ends an answer\n"
    "A line that ends in \\ goes on in the next.";

constexpr std::int64_t kDefaultContext = 4096;
constexpr std::int64_t kLeastRoom = 64;  // for an answer

class ChatCommand : public Command {
 public:
  ChatCommand() : Command("chat", "Talk with a model") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    declare_adapter(args, adapter_);
    args.option("--system", system_, "Instructions to the model, before the conversation").type_name("S");
    args.option("--max-tokens", max_tokens_, "Tokens of an answer at most; else as many as the context holds")
        .type_name("N")
        .check(integer_in(1));
    args.option("--context", context_,
                fmt::format("Positions of a conversation; else the model's, {} at most", kDefaultContext))
        .type_name("N")
        .check(integer_in(1));
    declare_sampling(args, sampling_);
    declare_mirostat(args, sampling_.mirostat);
    sampling_options_ = {args.get("--temperature"), args.get("--top-k"), args.get("--top-p"),
                         args.get("--min-p"), args.get("--repetition-penalty")};
    declare_seed(args, sampling_.seed);
    declare_dtype_or_auto(args, dtype_);
    declare_activations(args, activations_);
    declare_cache_type(args, cache_type_);
    decoding_.declare(args);
    args.option("--chat-template", template_, "A file with a chat template in place of the model's")
        .type_name("FILE")
        .check(not_empty());
    args.option("--chat-template-kwargs", variables_,
                "More variables for the template, as in '{\"enable_thinking\": false}'")
        .type_name("JSON");
    add_memory_limit(args);
  }

  void run() override {
    decoding_.check(json());
    Conversation conversation = make_conversation();
    conversation.restart(system_);
    const Device device = open_device();
    tokenizer_ = load_tokenizer(model_);
    const std::unique_ptr<CausalLM> model =
        load_model(model_, adapter_, device, parse_dtype(dtype_, model_, device),
                   parse_activations(activations_), parse_cache_type(cache_type_));
    prepare(*model);
    BatchGenerator generator(*model, limits(*model));
    converse(conversation, generator);
  }

 private:
  enum class Next : std::uint8_t { read, answer, leave };

  Conversation make_conversation() const {
    nlohmann::ordered_json variables = nlohmann::ordered_json::object();
    if (!variables_.empty()) {
      variables = parse_chat_json(variables_, "--chat-template-kwargs");
      if (!variables.is_object()) throw UsageError("--chat-template-kwargs: must be a JSON object");
    }
    const ModelChatTemplates stored = load_chat_templates(model_);
    return {template_.empty() ? stored.source() : read_text_file(template_), stored, std::move(variables)};
  }

  /// The model's own settings of sampling, where no flag says otherwise, and what ends an answer.
  void prepare(const CausalLM& model) {
    const GenerationConfig config = load_generation_config(model_);
    const auto& [temperature, top_k, top_p, min_p, repetition] = sampling_options_;
    if (!temperature.given() && config.temperature && config.do_sample.value_or(false))
      sampling_.temperature = *config.temperature;
    if (!top_k.given()) sampling_.top_k = config.top_k.value_or(sampling_.top_k);
    if (!top_p.given()) sampling_.top_p = config.top_p.value_or(sampling_.top_p);
    if (!min_p.given()) sampling_.min_p = config.min_p.value_or(sampling_.min_p);
    if (!repetition.given())
      sampling_.repetition_penalty = config.repetition_penalty.value_or(sampling_.repetition_penalty);
    options_.stop_ids = stop_tokens(model.config(), config, tokenizer_->eos_id());
    check_mirostat(sampling_);
    decoding_.prepare(model, tokenizer_, options_);
    options_.text.keeps_special = [](std::int32_t) { return true; };  // some models mark their thinking so
  }

  BatchLimits limits(const CausalLM& model) {
    const std::int64_t most = model.config().max_positions();
    if (context_ && *context_ > most)
      throw ValueError(fmt::format("--context: the model has {} positions", most));
    BatchLimits limits;
    limits.max_batch = 1;
    limits.max_context = context_.value_or(std::min(most, kDefaultContext));
    limits.cache_positions = limits.max_context;
    return limits;
  }

  void converse(Conversation& conversation, BatchGenerator& generator) {
    const InterruptGuard guard;
    LineReader reader;
    interactive_ = reader.interactive() && !json();
    if (interactive_) note("/help lists what can be done; Ctrl-D leaves");
    while (true) {
      const std::optional<std::string> line = read_message(reader);
      if (!line) break;
      if (take_interrupt() || line->empty()) continue;
      Next next = Next::answer;
      if (line->front() == '/')
        next = obey(*line, conversation);
      else
        conversation.say(*line);
      if (next == Next::leave) break;
      if (next == Next::answer) answer(conversation, generator);
    }
    if (interactive_) fmt::print("\n");
  }

  static std::optional<std::string> read_message(LineReader& reader) {
    std::optional<std::string> message = reader.read("> ");
    while (message && message->ends_with('\\')) {
      message->back() = '\n';
      const std::optional<std::string> more = reader.read(". ");
      if (!more) break;
      *message += *more;
    }
    return message;
  }

  Next obey(const std::string& line, Conversation& conversation) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, space);
    const std::string rest = space < line.size() ? line.substr(space + 1) : "";
    if (word == "/exit" || word == "/quit") return Next::leave;
    if (word == "/retry") {
      const std::string said = conversation.take_back();
      if (said.empty()) {
        note("there is nothing to answer yet");
        return Next::read;
      }
      conversation.say(said);
      return Next::answer;
    }
    if (word == "/help") {
      note(kHelp);
    } else if (word == "/system") {
      conversation.restart(rest);
    } else if (word == "/reset") {
      conversation.clear();
    } else if (word == "/undo") {
      if (conversation.take_back().empty()) note("there is nothing to take back");
    } else if (word == "/save" || word == "/load") {
      try {
        if (word == "/load")
          conversation.load(rest);
        else
          write_text_file(rest, conversation.messages().dump(2) + "\n");
      } catch (const std::exception& error) {
        note(error.what());
      }
    } else {
      note(fmt::format("there is no command '{}'; /help lists them", word));
    }
    return Next::read;
  }

  /// Generates an answer to what was said last. Where that fails, on a terminal the message is taken back and
  /// the conversation goes on; in a script it is the end.
  void answer(Conversation& conversation, BatchGenerator& generator) {
    try {
      const std::string prompt = fitting_prompt(conversation, generator.limits().max_context);
      generate_answer(conversation, generator, prompt);
    } catch (const std::exception& error) {
      if (!interactive_) throw;
      conversation.take_back();
      note(fmt::format("{}\n(the message was taken back)", error.what()));
    }
  }

  /// The conversation as the model reads it. What was said first is forgotten where there is no room for an
  /// answer.
  std::string fitting_prompt(Conversation& conversation, std::int64_t context) {
    const std::int64_t least = std::min(max_tokens_.value_or(kLeastRoom), kLeastRoom);
    std::string prompt = conversation.prompt();
    std::int64_t size = std::ssize(tokenizer_->encode(prompt, false));
    int forgotten = 0;
    for (; size + least > context && conversation.forget_first(); ++forgotten) {
      prompt = conversation.prompt();
      size = std::ssize(tokenizer_->encode(prompt, false));
    }
    if (forgotten > 0)
      note(fmt::format("the context of {} tokens is full: what was said first is forgotten ({} message{})",
                       context, forgotten, forgotten == 1 ? "" : "s"));
    const bool full = size > context - context / 5;
    if (full && !warned_)
      note(fmt::format("the context is nearly full: {} of {} tokens; what was said first will be forgotten",
                       size, context));
    warned_ = full;
    return prompt;
  }

  void generate_answer(Conversation& conversation, BatchGenerator& generator, const std::string& prompt) {
    GenerateRequest request{options_};
    request.prompt = tokenizer_->encode(prompt, false);  // the template has written special tokens itself
    const auto used = static_cast<std::int64_t>(request.prompt.size());
    const std::int64_t room = generator.limits().max_context - used;
    if (room < 1)
      throw ValueError(
          fmt::format("the conversation has {} tokens, its context {}: /reset it, or take a larger --context",
                      used, generator.limits().max_context));
    request.sampling = sampling_;
    ++sampling_.seed;  // so that /retry says something else
    decoding_.begin(request);
    request.max_tokens = std::min(max_tokens_.value_or(room), room);
    using Style = AnswerPrinter::Style;
    const Style style = json() ? Style::silent : interactive_ ? Style::terminal : Style::plain;
    AnswerPrinter printer(prompt, style);
    TokenEvent last;
    std::vector<TokenReport> reports;
    request.on_event = [&](const TokenEvent& event) {
      last = event;
      if (event.report) reports.push_back(*event.report);
      printer.push(event.text);
      return !interrupted();
    };
    const auto start = std::chrono::steady_clock::now();
    generator.submit(std::move(request));
    generator.run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    printer.finish();
    if (last.finish == FinishReason::failed) throw ValueError(last.error);
    conversation.answer(printer.answer(), printer.thinking());
    report(printer, last, reports, seconds);
  }

  void report(const AnswerPrinter& printer, const TokenEvent& last, const std::vector<TokenReport>& reports,
              double seconds) {
    const bool stopped = take_interrupt();
    const char* reason = stopped ? "cancelled" : last.finish == FinishReason::length ? "length" : "stop";
    if (!json()) {
      if (stopped || last.finish == FinishReason::length) note(fmt::format("[{}]", reason));
      return;
    }
    nlohmann::ordered_json turn{{"role", "assistant"}, {"content", printer.answer()}};
    if (!printer.thinking().empty()) turn["reasoning_content"] = printer.thinking();
    turn["finish_reason"] = reason;
    turn["prompt_tokens"] = last.prompt_tokens;
    turn["reused_tokens"] = last.reused_tokens;
    turn["tokens"] = last.generated_tokens;
    turn["drafted_tokens"] = last.drafted_tokens;
    turn["accepted_tokens"] = last.accepted_tokens;
    if (options_.logprobs) turn["logprobs"] = reports_json(reports, tokenizer_.get());
    turn["tokens_per_second"] = static_cast<double>(last.generated_tokens) / std::max(seconds, 1e-9);
    print_json(turn);
    std::fflush(stdout);
  }

  std::string model_;
  std::string adapter_;
  std::string system_;
  std::string template_;
  std::string variables_;
  std::string dtype_ = "auto";
  std::string activations_ = "rounded";
  std::string cache_type_;
  std::optional<std::int64_t> max_tokens_;
  std::optional<std::int64_t> context_;
  SamplingOptions sampling_;
  std::array<Option, 5> sampling_options_;
  DecodingFlags decoding_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  DecodingOptions options_;  // what all answers have in common
  bool interactive_ = false;
  bool warned_ = false;
};

}  // namespace

CommandPtr make_chat_command() { return std::make_unique<ChatCommand>(); }

}  // namespace caldera::cli
