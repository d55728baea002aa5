// Lineage: from which values a computed one may have come. A node drops its inputs when it is evaluated; this
// little stays, so that differentiation can tell a value whose gradient it would lose from a constant.
//
// A path is what a gradient follows: from a floating value to a floating input, and on. Paths end at the
// origins of a value: leaves, nodes without floating inputs, and operations without a gradient
// (stop_gradient, floor). A name for another value (OpClass::identity: an argument of a function under
// differentiation) is an origin too, beside those of the value that it names. Bare numbers are none: there
// are too many of them.
//
// The walk over the graph of a value (engine/graph/lineage_walk.h) leaves a mark of every origin, and of
// every node on a path that had a value already. So a value that came from x has a mark of x, unless x was
// lazy when the value, or something between the two, was computed. Then it has marks of all origins of x at
// least; a value of the same origins that did not come from x may have them too. Whatever is not known for
// sure counts as a path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace caldera {

/// The lineage of one value, or of many that were computed together. Constant once it is written, of bounded
/// size, and keeps no node alive. May be read by any thread.
struct Lineage {
  struct Mark {
    std::uint64_t id = 0;          // of a node
    std::uint64_t evaluation = 0;  // in which it got its value; 0 if it had none, or always
    bool is_origin = false;        // for sure, of all values that share the lineage
  };
  static constexpr std::size_t kMost = 64;

  std::vector<Mark> marks;       // the youngest node first, and no more than kMost
  std::uint64_t unknown = 0;     // nodes up to this id may have had marks
  std::uint64_t evaluation = 0;  // evaluations are counted

  /// Whether there is, or may have been, a mark of the node.
  bool may_name(std::uint64_t id) const;

 private:
  friend class LineagePtr;
  mutable std::atomic<std::uint32_t> refs_{1};
};

/// Owning pointer to a Lineage (intrusive count: it has to fit into a node).
class LineagePtr {
 public:
  LineagePtr() = default;
  explicit LineagePtr(const Lineage* adopted) : lineage_(adopted) {}
  LineagePtr(const LineagePtr& other);
  LineagePtr(LineagePtr&& other) noexcept : lineage_(std::exchange(other.lineage_, nullptr)) {}
  LineagePtr& operator=(LineagePtr other) noexcept {
    std::swap(lineage_, other.lineage_);
    return *this;
  }
  ~LineagePtr() {
    if (lineage_ != nullptr) drop(*lineage_);
  }

  const Lineage* get() const { return lineage_; }

 private:
  static void drop(const Lineage& lineage);

  const Lineage* lineage_ = nullptr;
};

}  // namespace caldera
