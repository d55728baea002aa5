// Talks with a model, a line at a time, by the chat template that it came with: chat MODEL
#include <caldera/caldera.h>
#include <caldera/lm.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
  using namespace caldera;  // NOLINT(google-build-using-namespace): an example may
  if (argc != 2) {
    std::fprintf(stderr, "usage: chat MODEL\n");
    return 2;
  }
  try {
    const std::unique_ptr<CausalLM> model = load_causal_lm(argv[1], default_device());
    const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(argv[1]);
    const ModelChatTemplates templates = load_chat_templates(argv[1]);
    Conversation conversation(templates.source(), templates, {});
    conversation.restart("You answer in one sentence.");

    GenerateOptions options;
    options.max_tokens = 200;
    options.sampling = {.temperature = 0.7, .top_p = 0.9};
    options.stop_ids = stop_tokens(model->config(), load_generation_config(argv[1]), tokenizer->eos_id());
    options.text.tokenizer = tokenizer;
    options.on_text = [](std::string_view text) {
      std::cout << text << std::flush;
      return true;
    };
    // A guess that the text repeats itself is free, and often right.
    options.drafter = std::make_shared<LookupDrafter>();
    for (std::string line; std::cout << "> " << std::flush, std::getline(std::cin, line);) {
      conversation.say(line);
      // The template has written the special tokens already.
      const Generation answer = generate(*model, tokenizer->encode(conversation.prompt(), false), options);
      conversation.answer(answer.text, "");
      std::cout << '\n';
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "chat: %s\n", error.what());
    return 1;
  }
}
