// HostExchange: work that the host does with the value of a tensor in the midst of a plan, such as a message.
// The contract between those who build such nodes (engine/distributed) and what runs plans.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace caldera {

/// One exchange that has begun. Its destructor waits for what still uses its memory.
class PendingExchange {
 public:
  PendingExchange() = default;
  virtual ~PendingExchange() = default;
  PendingExchange(const PendingExchange&) = delete;
  PendingExchange& operator=(const PendingExchange&) = delete;

  /// Waits for the result, which lives as long as this. Throws what went wrong. Called once.
  virtual std::span<const std::byte> finish() = 0;
};

/// Exchanges of one queue begin in the order in which they were made, whatever a plan's memory would have
/// first: ranks that build the same graph on tensors of different sizes have them in the same order.
/// Thread-safety: begin() is called by one thread at a time.
class HostExchange {
 public:
  HostExchange() : number_(next_number()) {}
  virtual ~HostExchange() = default;
  HostExchange(const HostExchange&) = delete;
  HostExchange& operator=(const HostExchange&) = delete;

  /// Names the operation for traces and errors.
  virtual std::string_view name() const = 0;
  /// Counts exchanges as they are made.
  std::uint64_t number() const { return number_; }
  /// Returns which queue it is in: the order of exchanges of different queues is free.
  virtual int queue() const { return 0; }
  /// Whether it is to begin as soon as its input is there, and what reads its result to wait until nothing
  /// else is left to do: so it goes on meanwhile. Else it stays where memory has it.
  virtual bool is_early() const { return true; }
  /// Returns where the value of the input is to be put, `bytes` of it, before start() is called. What is
  /// computed goes on meanwhile.
  struct Begun {
    std::span<std::byte> input;
    std::unique_ptr<PendingExchange> pending;
  };
  virtual Begun begin(std::size_t bytes, std::size_t result_bytes) const = 0;
  /// Starts what begin() gave, whose input is there now.
  virtual void start(PendingExchange& pending) const = 0;

 private:
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> made{0};
    return made.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t number_ = 0;
};

}  // namespace caldera
