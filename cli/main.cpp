// The program caldera: runs, serves, fine-tunes and converts language models, and checks devices.
//
// Exit codes: 0, 1 (the work failed; one line on standard error says what, where and what to do), 2 (bad
// arguments).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/arguments/command.h"
#include "cli/arguments/version.h"
#include "engine/distributed/distributed.h"

// A line a command, in the order of --help: C(NAME) stands for `CommandPtr make_NAME_command()` of
// cli/NAME.cpp.
#define CALDERA_COMMANDS(C) \
  C(devices)                \
  C(doctor)                 \
  C(tokenize)               \
  C(template)               \
  C(convert)                \
  C(pull)                   \
  C(generate)               \
  C(chat)                   \
  C(evaluate)               \
  C(embed)                  \
  C(pretrain)               \
  C(rl)                     \
  C(train_image)            \
  C(finetune)               \
  C(fit)                    \
  C(scale)                  \
  C(fuse)                   \
  C(compare)                \
  C(explain)                \
  C(serve)                  \
  C(kernels)                \
  C(bench)

namespace caldera::cli {

#define CALDERA_DECLARE_COMMAND(name) CommandPtr make_##name##_command();
CALDERA_COMMANDS(CALDERA_DECLARE_COMMAND)
#undef CALDERA_DECLARE_COMMAND

namespace {

constexpr int kFailed = 1;
constexpr int kBadArguments = 2;

// Errors are one line, whatever the message came from.
std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int fail(int code, const std::string& who, const std::string& message) {
  std::fflush(stdout);
  if (!distributed::is_launched()) {
    fmt::print(stderr, "{}: {}\n", who, one_line(message));
    return code;
  }
  const int rank = distributed::launched_rank();
  const auto say = [&] {
    fmt::print(stderr, "{}: rank {}: {}\n", who, rank, one_line(message));
    std::fflush(stderr);
  };
  if (rank == 0) say();
  // The others may wait for this one to start MPI, and hear of its end only from there.
  constexpr double kForOthers = 5;
  try {
    if (!distributed::is_started()) distributed::init({.timeout = kForOthers});
  } catch (const std::exception&) {  // it has something to say already
  }
  // What is wrong everywhere rank 0 says, and ends the others meanwhile.
  if (rank > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(700 + 20 * std::min(rank, 50)));
    say();
  }
  distributed::end_all(code);
}

int execute(Command& command) {
  const std::string who = "caldera " + command.name();
  try {
    command.execute();
    distributed::finish();
  } catch (const UsageError& error) {
    return fail(kBadArguments, who, fmt::format("{} (see {} --help)", error.what(), who));
  } catch (const std::bad_alloc&) {
    return fail(kFailed, who, "out of memory; try a smaller --batch-size or --seq-len, or a smaller model");
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(kFailed, who, fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::exception& error) {
    return fail(kFailed, who, error.what());
  }
  // What an earlier flush lost, only ferror remembers.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return fail(kFailed, who, "cannot write to standard output");
  return 0;
}

/// Threads that wait for each other spin for about 20 us before they sleep. OpenMP's default is to spin for
/// milliseconds: as fast on a quiet machine, but a hundred times slower when another program wants the core.
/// The runtime reads the variable when it is loaded, before main, so the program starts itself once more.
void limit_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // By its own path, so that lists of processes have its name.
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || setenv("GOMP_SPINCOUNT", "10000", 1) != 0) return;
  execv(self.c_str(), argv);
  execv("/proc/self/exe", argv);  // whose file is gone
}

std::vector<CommandPtr> make_commands() {
  std::vector<CommandPtr> commands;
#define CALDERA_MAKE_COMMAND(name) commands.push_back(make_##name##_command());
  CALDERA_COMMANDS(CALDERA_MAKE_COMMAND)
#undef CALDERA_MAKE_COMMAND
  return commands;
}

int run(int argc, const char* const* argv) {
  const std::vector<CommandPtr> commands = make_commands();
  ArgumentParser parser(
      "Caldera fine-tunes, evaluates and samples language models, on Vulkan GPUs and on CPUs.", "caldera",
      fmt::format("caldera {}", kVersion));
  for (const CommandPtr& command : commands) {
    Arguments arguments = parser.add_command(command->name(), command->summary());
    command->declare(arguments);
    parser.read_settings_of(command->name(), [&](const std::vector<std::string>& given) {
      return command->settings_file(given);
    });
  }
  const auto named = [&](std::string_view name) {
    return std::find_if(commands.begin(), commands.end(),
                        [&](const CommandPtr& c) { return c->name() == name; });
  };

  std::string who = "caldera";
  if (argc > 1) {
    const std::string_view first = argv[1];
    const bool known = named(first) != commands.end();
    if (known) who = fmt::format("caldera {}", first);
    if (!known && !first.starts_with('-')) {
      return fail(kBadArguments, who, fmt::format("there is no command '{}' (see caldera --help)", first));
    }
  }

  std::optional<std::string> asked;
  try {
    asked = parser.parse(argc, argv);
  } catch (const UsageError& error) {
    return fail(kBadArguments, who, fmt::format("{} (see {} --help)", one_line(error.what()), who));
  } catch (const FileError& error) {  // the settings file
    return fail(kFailed, who, one_line(error.what()));
  }
  return asked ? execute(**named(*asked)) : 0;
}

}  // namespace
}  // namespace caldera::cli

int main(int argc, char** argv) {
  caldera::cli::limit_spinning(argv);
  try {
    return caldera::cli::run(argc, argv);
  } catch (const std::exception& error) {  // declaring the options went wrong: a defect, but never a crash
    std::fprintf(stderr, "caldera: %s\n", error.what());
    return 1;
  }
}
