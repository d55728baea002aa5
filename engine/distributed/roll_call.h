// RollCall: ranks that have waited long tell one another that they are there, so that who is not is named.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/distributed/mpi/mpi_interface.h"

namespace caldera::distributed {

/// The words between the ranks of a communicator. MPI writes into it from listen() to close(), also where
/// nobody has the communicator any more. Threads: that of the messages alone.
class RollCall {
 public:
  RollCall() = default;
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  /// Opens a receive from each other rank, the first time that it is called. Returns whether it did.
  bool listen(const CalderaMpi& mpi, int communicator, int rank, int size);
  /// Takes the words that have come, and answers each question.
  void hear();
  /// Takes the receives back, ahead of the end of MPI.
  void close();
  /// Asks all others whether they are there, and forgets what they said before.
  void begin();
  /// Asks once more those that have said nothing since begin(): an answer is lost where a rank has begun
  /// another operation meanwhile.
  void ask_again();
  /// Returns the ranks that have said nothing since begin(), or whose messages fail.
  std::vector<int> silent() const;

 private:
  enum class Word : std::uint8_t { question, answer };
  struct Other {
    int rank = 0;
    int request = -1;  // of its next word
    bool is_heard = false;
    bool is_lost = false;
    std::unique_ptr<Word> word = std::make_unique<Word>(Word::answer);
  };

  void receive_from(Other& other);
  void say(const Word& word, const Other& other);
  /// Whether a request is over, or has failed.
  bool is_over(int request) const { return request < 0 || mpi_->test(request) != 0; }

  const CalderaMpi* mpi_ = nullptr;
  int communicator_ = 0;
  std::vector<Other> others_;
  std::vector<int> sent_;  // requests of what was said
};

}  // namespace caldera::distributed
