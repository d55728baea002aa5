#include "engine/distributed/roll_call.h"

namespace caldera::distributed {
namespace {

/// Of messages between two ranks: communicator.cpp and message_thread.cpp have others.
constexpr int kPresenceTag = 4;

}  // namespace

bool RollCall::listen(const CalderaMpi& mpi, int communicator, int rank, int size) {
  if (size < 2 || !others_.empty()) return false;
  mpi_ = &mpi;
  communicator_ = communicator;
  others_.resize(static_cast<std::size_t>(size) - 1);
  for (int k = 1; k < size; ++k) {
    Other& other = others_[static_cast<std::size_t>(k) - 1];
    other.rank = (rank + k) % size;
    receive_from(other);
  }
  return true;
}

void RollCall::close() {
  std::erase_if(sent_, [&](int request) { return is_over(request); });
  for (Other& other : others_)
    if (!other.is_lost) mpi_->cancel(other.request);
  others_.clear();
}

void RollCall::receive_from(Other& other) {
  other.request = mpi_->receive(communicator_, other.word.get(), sizeof(Word), other.rank, kPresenceTag);
  other.is_lost = other.request < 0;
}

void RollCall::say(const Word& word, const Other& other) {
  sent_.push_back(mpi_->send(communicator_, &word, sizeof(Word), other.rank, kPresenceTag));
}

void RollCall::hear() {
  static constexpr Word kAnswer = Word::answer;
  std::erase_if(sent_, [&](int request) { return is_over(request); });
  for (Other& other : others_) {
    while (!other.is_lost) {
      const int done = mpi_->test(other.request);
      if (done == 0) break;
      if (done < 0) {
        other.is_lost = true;
        break;
      }
      other.is_heard = true;
      if (*other.word == Word::question) say(kAnswer, other);
      receive_from(other);
    }
  }
}

void RollCall::begin() {
  hear();
  for (Other& other : others_) other.is_heard = false;
  ask_again();
}

void RollCall::ask_again() {
  static constexpr Word kQuestion = Word::question;
  for (const Other& other : others_)
    if (!other.is_lost && !other.is_heard) say(kQuestion, other);
}

std::vector<int> RollCall::silent() const {
  std::vector<int> ranks;
  for (const Other& other : others_)
    if (other.is_lost || !other.is_heard) ranks.push_back(other.rank);
  return ranks;
}

}  // namespace caldera::distributed
