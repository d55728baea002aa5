// Interleaves the instructions of several registers of points. A function such as exp is a long chain in
// which each instruction waits for the one before it; processors look too few instructions ahead to find the
// next points' chain behind it, so the chains are laid side by side.
#pragma once

#include <asmjit/x86.h>

#include <cstddef>
#include <vector>

namespace caldera::cpu {

/// Collects what a compiler appends, stream by stream. Streams may share registers that they only read, and
/// such that each of their instructions updates at once (sums, masks).
class PointStreams {
 public:
  explicit PointStreams(asmjit::x86::Compiler& compiler) : cc_(compiler), last_(compiler.cursor()) {}

  /// Ends a stream: what was appended since the one before.
  void end_stream();
  /// Instructions of the longest stream.
  std::size_t length() const;
  /// Whether no stream branches.
  bool is_straight() const { return is_straight_; }
  /// Lays the streams side by side, one instruction of each in turn, and forgets them. Streams that branch
  /// stay one behind the other.
  void weave();
  /// Takes away what was appended.
  void discard();

 private:
  asmjit::x86::Compiler& cc_;
  asmjit::BaseNode* last_;  // of the stream before
  std::vector<std::vector<asmjit::BaseNode*>> streams_;
  bool is_straight_ = true;
};

}  // namespace caldera::cpu
