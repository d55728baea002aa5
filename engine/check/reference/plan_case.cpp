#include "engine/check/reference/plan_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/device/backend.h"

namespace caldera::reference {
namespace {

/// A difference in units of what the tolerance allows.
double in_tolerances(DType type, double difference, Number want, Tolerance tolerance) {
  if (difference == 0) return 0;
  const double allowed = is_floating(type) ? tolerance.absolute + tolerance.relative * std::fabs(want.f) : 0;
  return std::isfinite(difference) ? difference / allowed : difference;
}

}  // namespace

Operand view(int buffer, std::initializer_list<std::int64_t> strides, std::int64_t offset) {
  Operand o;
  o.buffer = buffer;
  o.offset = offset;
  o.strides = Dims(strides);
  return o;
}

int PlanCase::add_buffer(BufferRole role, DType type, std::int64_t elements) {
  PlanBuffer buffer;
  buffer.role = role;
  buffer.dtype = type;
  buffer.bytes = elements * static_cast<std::int64_t>(size_of(type));
  if (role == BufferRole::arena) {
    buffer.arena_offset = plan_->arena_bytes;
    plan_->arena_bytes += (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    const std::int64_t segment = plan_->arena_cuts.empty() ? 0 : plan_->arena_cuts.back();
    if (buffer.arena_offset > segment && plan_->arena_bytes - segment > plan_->arena_segment)
      plan_->arena_cuts.push_back(buffer.arena_offset);
  }
  plan_->input_count += role == BufferRole::input;
  plan_->output_count += role == BufferRole::output;
  plan_->buffers.push_back(buffer);
  // Only the reference needs the memory of intermediates here: see expected().
  memory_.buffers.emplace_back(role == BufferRole::arena ? 0 : static_cast<std::size_t>(buffer.bytes),
                               std::byte{0xff});
  if (type == DType::boolean)
    std::fill(memory_.buffers.back().begin(), memory_.buffers.back().end(), std::byte{1});
  return static_cast<int>(plan_->buffers.size()) - 1;
}

void PlanCase::fill_random(int buffer, Range range) {
  const PlanBuffer& b = plan_->buffers[static_cast<std::size_t>(buffer)];
  const std::int64_t elements = b.bytes / static_cast<std::int64_t>(size_of(b.dtype));
  std::uniform_real_distribution<double> real(range.low, range.high);
  std::uniform_int_distribution<std::int64_t> whole(is_unsigned(b.dtype) ? 0 : -9, 9);
  for (std::int64_t i = 0; i < elements; ++i) {
    double f = 0;
    while (f == 0) f = range.whole ? std::round(real(random_)) : static_cast<float>(real(random_));
    set(buffer, i, {f, b.dtype == DType::boolean ? whole(random_) & 1 : whole(random_)});
  }
}

int PlanCase::input(DType type, std::int64_t elements, Range range) {
  const int buffer = add_buffer(BufferRole::input, type, elements);
  fill_random(buffer, range);
  return buffer;
}

int PlanCase::output(DType type, std::int64_t elements) {
  return add_buffer(BufferRole::output, type, elements);
}

int PlanCase::output_with_data(DType type, std::int64_t elements) {
  const int buffer = output(type, elements);
  fill_random(buffer, {});
  return buffer;
}

int PlanCase::arena(DType type, std::int64_t elements) {
  return add_buffer(BufferRole::arena, type, elements);
}

int PlanCase::scalar(DType type, Number value) {
  std::vector<std::byte> raw(8);
  write_number(raw, type, 0, value);
  std::uint64_t bits = 0;
  std::memcpy(&bits, raw.data(), 8);
  plan_->scalars.push_back(type);
  memory_.scalars.push_back(bits);
  return static_cast<int>(plan_->scalars.size()) - 1;
}

void PlanCase::set(int buffer, std::int64_t element, Number value) {
  const auto b = static_cast<std::size_t>(buffer);
  write_number(memory_.buffers[b], plan_->buffers[b].dtype, element, value);
}

Step& PlanCase::add(Step step) {
  step.barrier_before = !plan_->steps.empty();
  std::size_t scalars = 0;
  for (const StepKernel& used : step.kernels()) scalars += used.kernel->scalars.size();
  for (std::size_t i = 0; i < scalars; ++i) step.scalars.push_back(static_cast<std::int32_t>(i));
  plan_->steps.push_back(std::move(step));
  return plan_->steps.back();
}

Step& PlanCase::region(std::shared_ptr<const Kernel> kernel, const Shape& dims, std::vector<Operand> operands,
                       int reduce_rank) {
  Step s;
  s.dtype = kernel->outputs.at(0).type;
  s.work = RegionStep{.kernel = std::move(kernel), .reduce_rank = static_cast<std::int8_t>(reduce_rank)};
  s.dims = dims;
  s.operands = std::move(operands);
  return add(std::move(s));
}

Step& PlanCase::indexed(Step::Work work, DType type, const Shape& dims, std::vector<Operand> operands) {
  Step s;
  s.work = std::move(work);
  s.dtype = type;
  s.dims = dims;
  s.operands = std::move(operands);
  return add(std::move(s));
}

Step& PlanCase::contract(DType type, const Shape& dims, std::vector<Operand> operands,
                         std::shared_ptr<const Kernel> epilogue, std::vector<Segment> further) {
  Step s;
  s.dtype = type;
  s.dims = dims;
  s.operands = std::move(operands);
  further.insert(further.begin(), {.k = s.dims.back()});
  s.work = ContractStep{.segments = std::move(further), .epilogue = std::move(epilogue)};
  return add(std::move(s));
}

Step& PlanCase::attention(AttentionPass pass, const Shape& dims, std::vector<Operand> operands,
                          std::shared_ptr<const Kernel> score, std::shared_ptr<const Kernel> gradient) {
  Step s;
  s.work = AttentionStep{
      .pass = pass, .score = std::move(score), .gradient = std::move(gradient), .causal = {}, .stored = {}};
  s.dims = dims;
  s.operands = std::move(operands);
  return add(std::move(s));
}

void PlanCase::join() {
  plan_->steps.back().joined = true;
  plan_->steps.back().barrier_before = false;
}

void PlanCase::follow() {
  join();
  plan_->steps.back().follows = true;
}

void PlanCase::finish() { plan_->steps.back().finishes = true; }

void PlanCase::run_last_step_ahead() {
  Plan alone = *plan_;
  alone.steps = {plan_->steps.back()};
  plan_->steps.pop_back();
  for (std::size_t b = 0; b < plan_->buffers.size(); ++b)
    memory_.buffers[b].resize(static_cast<std::size_t>(plan_->buffers[b].bytes), std::byte{0xff});
  run_reference(alone, memory_);
}

DeviceRun PlanCase::run_on(Backend& backend) const {
  const auto executable = backend.prepare(plan_);
  return run_on(backend, *executable);
}

DeviceRun PlanCase::run_on(Backend& backend, Executable& executable) const {
  // Every buffer is inside a larger storage, as bound tensors may, and nothing around it may change.
  constexpr std::size_t kAround = 256;
  std::vector<StoragePtr> storages;
  Bindings bindings;
  const auto inputs = static_cast<std::size_t>(plan_->input_count);
  const std::size_t bound = inputs + static_cast<std::size_t>(plan_->output_count);
  for (std::size_t i = 0; i < bound; ++i) {
    const auto& bytes = memory_.buffers[i];
    std::vector<std::byte> framed(bytes.size() + 2 * kAround, std::byte{0x5a});
    std::copy(bytes.begin(), bytes.end(), framed.begin() + static_cast<std::ptrdiff_t>(kAround));
    storages.push_back(backend.allocate(framed.size()));
    backend.upload(*storages.back(), 0, framed.data(), framed.size());
    bindings.slots.push_back({storages.back().get(), static_cast<std::int64_t>(kAround)});
  }
  bindings.scalars = memory_.scalars;
  bindings.scalars.insert(bindings.scalars.end(), plan_->constants.begin(), plan_->constants.end());
  backend.wait(backend.submit(executable, bindings));
  DeviceRun run;
  for (std::size_t i = 0; i < bound; ++i) {
    const std::size_t size = memory_.buffers[i].size();
    std::vector<std::byte> framed(size + 2 * kAround);
    backend.download(*storages[i], 0, framed.data(), framed.size());
    const auto begin = framed.begin() + static_cast<std::ptrdiff_t>(kAround);
    const auto end = begin + static_cast<std::ptrdiff_t>(size);
    const auto untouched = [](std::byte b) { return b == std::byte{0x5a}; };
    if (!std::all_of(framed.begin(), begin, untouched))
      run.damage.push_back("bytes before buffer " + std::to_string(i) + " changed");
    if (!std::all_of(end, framed.end(), untouched))
      run.damage.push_back("bytes behind buffer " + std::to_string(i) + " changed");
    if (i >= inputs)
      run.outputs.emplace_back(begin, end);
    else if (!std::equal(begin, end, memory_.buffers[i].begin()))
      run.damage.push_back("input " + std::to_string(i) + " changed");
  }
  return run;
}

PlanMemory PlanCase::expected() const {
  PlanMemory result = memory_;
  for (std::size_t b = 0; b < plan_->buffers.size(); ++b)
    result.buffers[b].resize(static_cast<std::size_t>(plan_->buffers[b].bytes), std::byte{0xff});
  run_reference(*plan_, result);
  return result;
}

Comparison PlanCase::compare_output(const DeviceRun& run, const PlanMemory& expected, std::size_t number,
                                    Tolerance tolerance) const {
  constexpr std::int64_t kMostComplaints = 3;
  Comparison result;
  const std::size_t b = static_cast<std::size_t>(plan_->input_count) + number;
  const DType type = plan_->buffers.at(b).dtype;
  const std::vector<std::byte>& bytes = run.outputs.at(number);
  const auto elements = static_cast<std::int64_t>(bytes.size() / size_of(type));
  for (std::int64_t i = 0; i < elements; ++i) {
    const Number got = read_number(bytes, type, i);
    const Number want = read_number(expected.buffers.at(b), type, i);
    const double apart = difference(type, got, want);
    const double ratio = in_tolerances(type, apart, want, tolerance);
    result.difference = std::max(result.difference, apart);
    result.worst = std::max(result.worst, ratio);
    if (ratio <= 1 || ++result.differing > kMostComplaints) continue;
    const std::string step = plan_->steps.empty() ? "the plan" : plan_->steps.back().name();
    result.complaints.push_back("output " + std::to_string(number) + " of " + step + ", element " +
                                std::to_string(i) + ": got " + to_text(type, got) + ", want " +
                                to_text(type, want));
  }
  if (result.differing > kMostComplaints)
    result.complaints.push_back(std::to_string(result.differing) + " elements of output " +
                                std::to_string(number) + " differ");
  return result;
}

Comparison PlanCase::compare(const DeviceRun& run, Tolerance tolerance) const {
  const PlanMemory reference = expected();
  Comparison all;
  all.complaints = run.damage;
  for (std::size_t o = 0; o < run.outputs.size(); ++o) {
    const Comparison one = compare_output(run, reference, o, tolerance);
    all.differing += one.differing;
    all.worst = std::max(all.worst, one.worst);
    all.difference = std::max(all.difference, one.difference);
    all.complaints.insert(all.complaints.end(), one.complaints.begin(), one.complaints.end());
  }
  return all;
}

}  // namespace caldera::reference
