// A scan traced: its body called once, and what it goes through checked.
#include <fmt/core.h>

#include <memory>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/base/error.h"
#include "engine/control/carry.h"
#include "engine/control/control_node.h"
#include "engine/control/lists.h"
#include "engine/control/scan_loop.h"
#include "ops/core/creation.h"

namespace caldera {
namespace {

std::int64_t turns_of(std::span<const LazyTensor> over, std::span<const std::vector<LazyTensor>> lists,
                      std::int64_t given, std::string_view title) {
  std::int64_t turns = given;
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i].rank() == 0)
      throw ShapeError(fmt::format("{}: tensor {} to go through has no axis to take slices along", title, i));
    if (turns >= 0 && over[i].shape(0) != turns) {
      throw ShapeError(fmt::format("{}: tensor {} has {} slices along its first axis, and there are {} turns",
                                   title, i, over[i].shape(0), turns));
    }
    turns = over[i].shape(0);
  }
  for (std::size_t l = 0; l < lists.size(); ++l) {
    const auto count = static_cast<std::int64_t>(lists[l].size());
    if (turns >= 0 && count != turns) {
      throw ShapeError(fmt::format("{}: list {} has {} tensors, and there are {} turns; give one for each",
                                   title, l, count, turns));
    }
    turns = count;
  }
  if (turns < 0)
    throw ValueError(fmt::format(
        "{}: the number of turns is not given: set .turns, or give a tensor to go through", title));
  return turns;
}

}  // namespace

AllOfScan all_of_scan(std::string title, const ScanBody& body, std::span<const LazyTensor> first,
                      std::span<const LazyTensor> over, const ScanOptions& options) {
  check_callable(body, title);
  std::vector<LazyTensor> through(over.begin(), over.end());
  for (const std::vector<LazyTensor>& list : options.lists) {
    if (!list.empty() && list[0].defined()) through.push_back(list[0]);
  }
  const std::vector<LazyTensor> init = first_carries(first, through, title);
  const Device device = init.front().device();
  if (options.snapshots < 0)
    throw ValueError(
        fmt::format("{}: {} snapshots; give 0 (all carries are kept) or more", title, options.snapshots));
  const std::vector<LazyTensor> listed = checked_lists(options.lists, device, title);
  const std::int64_t turns = turns_of(over, options.lists, options.turns, title);
  // A slice of each, for its type.
  std::vector<LazyTensor> like = init;
  for (const LazyTensor& x : over) like.push_back(slice_like(x));
  for (std::size_t i = 0; i < listed.size(); i += static_cast<std::size_t>(turns)) like.push_back(listed[i]);
  const std::size_t carries = init.size();
  std::size_t stacked = 0, listed_results = 0;
  const auto with_carries = [&](std::span<const LazyTensor> all) {
    ScanTurn turn = body(all.first(carries), all.subspan(carries));
    turn.carry = carries_after(std::move(turn.carry), init, title);
    stacked = turn.stacked.size();
    listed_results = turn.listed.size();
    // The carries that the turn began with are stacked too: gradients ask for those of all turns.
    return joined({turn.carry, turn.stacked, all.first(carries), turn.listed});
  };
  Body traced(with_carries, like, title);
  if (turns == 0) {
    ScanTurn out{.carry = init};
    for (std::size_t i = 0; i < stacked; ++i) {
      const TensorType type = stacked_type_of(traced.results()[carries + i], 0);
      out.stacked.push_back(zeros(type.shape.get(), type.dtype, device));
    }
    return {.turn = std::move(out)};
  }
  const std::vector<LazyTensor> arguments = joined({init, over, listed, traced.captured()});
  const auto loop = std::make_shared<const ScanLoop>(ScanLoop{.title = std::move(title),
                                                              .body = std::move(traced),
                                                              .carries = carries,
                                                              .over = over.size(),
                                                              .lists = options.lists.size(),
                                                              .stacked = stacked,
                                                              .listed = listed_results,
                                                              .turns = turns,
                                                              .reverse = options.reverse,
                                                              .snapshots = options.snapshots});
  const std::vector<LazyTensor> values = scan_results(loop, arguments);
  const auto all = std::span(values);
  return {.turn = {.carry = joined({all.first(carries)}),
                   .stacked = joined({all.subspan(carries, stacked)}),
                   .listed = joined({all.subspan(carries + loop->stacked_results())})},
          .kept = joined({all.subspan(carries + stacked, carries)})};
}

}  // namespace caldera
