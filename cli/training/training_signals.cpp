#include "cli/training/training_signals.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

namespace caldera::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

volatile std::sig_atomic_t stopping = 0;
volatile std::sig_atomic_t saving = 0;
std::array<struct sigaction, kSignals.size()> actions_before;

extern "C" void remember_for_training(int signal) {
  if (signal == SIGUSR1) {
    saving = 1;
    return;
  }
  constexpr int kKilledBy = 128;
  if (stopping != 0) _exit(kKilledBy + signal);
  stopping = 1;
  constexpr std::string_view kSay = "\nstopping after this step; once more ends at once, without saving\n";
  static_cast<void>(!::write(STDERR_FILENO, kSay.data(), kSay.size()));
}

}  // namespace

TrainingSignals::TrainingSignals() {
  stopping = 0;
  saving = 0;
  struct sigaction action = {};
  action.sa_handler = remember_for_training;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &actions_before[i]);
    // nohup asks for it.
    const bool stays_ignored = kSignals[i] == SIGHUP && actions_before[i].sa_handler == SIG_IGN;
    if (!stays_ignored) sigaction(kSignals[i], &action, nullptr);
  }
}

TrainingSignals::~TrainingSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &actions_before[i], nullptr);
}

bool TrainingSignals::stop_requested() const { return stopping != 0; }

bool TrainingSignals::take_save_request() {
  const bool was = saving != 0;
  saving = 0;
  return was;
}

}  // namespace caldera::cli
