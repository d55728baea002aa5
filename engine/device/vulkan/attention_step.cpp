// Attention forward and backward: merges batch dimensions, picks the block that a workgroup takes, puts the
// shader together from its text and the kernels.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "engine/device/vulkan/embedded_shaders.h"
#include "engine/device/vulkan/encoder.h"
#include "engine/device/vulkan/kernel_arguments.h"
#include "engine/kernel/glsl_epilogue.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

// As in shaders/attention.glsl.
constexpr int kMaxBatchRank = 4;  // kMaxRank less M, N, D, E
constexpr std::int64_t kTileColumns = 4;
constexpr std::int64_t kMaxHead = 256;

/// What an operand's rows and columns are; `none`: it has none.
enum class Axis : std::uint8_t { queries, keys, d, e, none };

struct Named {
  std::size_t operand;
  Axis rows, columns;
};

/// The operands that the shader's text knows, in its order: the step's named ones, then its outputs.
std::vector<Named> named_operands(const Step& step) {
  const std::size_t outputs = step.operands.size() - static_cast<std::size_t>(step.output_count());
  std::vector<Named> list = {{0, Axis::queries, Axis::d}, {1, Axis::keys, Axis::d}, {2, Axis::keys, Axis::e}};
  if (step.kind == StepKind::attention) {
    list.push_back({outputs, Axis::queries, Axis::e});
    list.push_back({outputs + 1, Axis::queries, Axis::none});
    return list;
  }
  list.push_back({3, Axis::queries, Axis::e});
  list.push_back({4, Axis::queries, Axis::none});
  list.push_back({5, Axis::queries, Axis::none});
  if (step.kind == StepKind::attention_grad_q) {
    list.push_back({outputs, Axis::queries, Axis::d});
  } else {
    list.push_back({outputs, Axis::keys, Axis::d});
    list.push_back({outputs + 1, Axis::keys, Axis::e});
  }
  return list;
}

/// The iteration space after merging: batch extents, then M, N, D, E; every operand's strides over all of
/// them.
struct Space {
  Dims batch;
  Dims sizes;                 // M, N, D, E
  std::vector<Dims> strides;  // over the batch dimensions, then M, N, D, E

  std::int64_t batches() const {
    std::int64_t product = 1;
    for (std::int64_t e : batch) product *= e;
    return product;
  }
  std::int64_t size(Axis axis) const { return axis == Axis::none ? 1 : sizes[static_cast<int>(axis)]; }
  std::int64_t stride(std::size_t operand, Axis axis) const {
    return axis == Axis::none ? 0 : strides[operand][batch.rank() + static_cast<int>(axis)];
  }
  Dims batch_strides(std::size_t operand) const {
    return Dims(strides[operand].span().first(static_cast<std::size_t>(batch.rank())));
  }
};

Space make_space(const Step& step) {
  Space space;
  const int batch_rank = step.dims.rank() - 4;
  space.strides.resize(step.operands.size());
  for (int d = 0; d < batch_rank; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    bool joins = !space.batch.empty();
    for (std::size_t k = 0; joins && k < space.strides.size(); ++k)
      joins = space.strides[k].back() == step.operands[k].strides[d] * extent;
    if (joins) {
      space.batch[space.batch.rank() - 1] *= extent;
      for (std::size_t k = 0; k < space.strides.size(); ++k)
        space.strides[k][space.batch.rank() - 1] = step.operands[k].strides[d];
    } else {
      space.batch.push_back(extent);
      for (std::size_t k = 0; k < space.strides.size(); ++k)
        space.strides[k].push_back(step.operands[k].strides[d]);
    }
  }
  for (int d = batch_rank; d < step.dims.rank(); ++d) {
    space.sizes.push_back(step.dims[d]);
    for (std::size_t k = 0; k < space.strides.size(); ++k)
      space.strides[k].push_back(step.operands[k].strides[d]);
  }
  return space;
}

/// How a workgroup shares a block of scores: see shaders/attention.glsl.
struct Blocking {
  std::int64_t lane_rows, lane_columns, tile_rows;
  std::int64_t each;  // columns of an output that an invocation keeps
  std::int64_t rows() const { return lane_rows * tile_rows; }
  std::int64_t columns() const { return lane_columns * kTileColumns; }
};

Blocking choose_blocking(const Capabilities& can, std::int64_t rows, std::int64_t head, bool two_outputs) {
  // A subgroup on the host's processor, where wide workgroups are slow; else a square of 64.
  const std::int64_t lanes = can.software ? std::clamp<std::int64_t>(can.subgroup_size, 1, 32) : 64;
  // Sums that one invocation keeps. A processor has them in its first cache, a GPU in registers.
  const std::int64_t sums = can.software ? 128 : 64;
  Blocking b{};
  b.lane_columns = rows == 1 ? lanes : std::min<std::int64_t>(lanes, can.software ? 4 : 8);
  b.lane_rows = rows == 1 ? 1 : std::max<std::int64_t>(lanes / b.lane_columns, 1);
  b.each = (head + b.lane_columns - 1) / b.lane_columns;
  b.each = std::max<std::int64_t>(b.each, 1);
  b.tile_rows = rows == 1 ? 1 : 8;
  while (b.tile_rows > 1 && (b.tile_rows * b.each * (two_outputs ? 2 : 1) > sums || b.rows() >= 2 * rows))
    b.tile_rows /= 2;
  return b;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// A kernel of the step: its operands and scalar arguments among those of the step.
struct Part {
  const Kernel* kernel;
  const char* name;
  int parameters;
  std::size_t first_operand, first_scalar;
  std::size_t operands() const {
    return kernel->inputs.size() - static_cast<std::size_t>(parameters) +
           static_cast<std::size_t>(kernel->index_count);
  }
};

std::vector<Part> kernels(const Step& step) {
  const auto named = static_cast<std::size_t>(step.named_operands());
  std::vector<Part> parts{{step.kernel.get(), "score_of", 1, named, 0}};
  if (step.kind != StepKind::attention)
    parts.push_back(
        {step.gradient.get(), "gradient_of", 2, named + parts[0].operands(), step.kernel->scalars.size()});
  return parts;
}

KernelArguments arguments(const Step& step, const Space& space, const Part& part) {
  Dims extents = space.batch;
  extents.push_back(space.size(Axis::queries));
  extents.push_back(space.size(Axis::keys));
  std::vector<KernelView> views;
  for (std::size_t i = part.first_operand; i < part.first_operand + part.operands(); ++i) {
    KernelView view;
    view.operand = &step.operands[i];
    view.is_index = view.operand->buffer < 0;
    view.strides = Dims(space.strides[i].span().first(static_cast<std::size_t>(extents.rank())));
    view.access = scalar_or_strided(view.strides);
    views.push_back(view);
  }
  return {step, extents, std::move(views)};
}

GlslEpilogue::Shape shape(const Space& space, const Part& part) {
  GlslEpilogue::Shape s{.rank = space.batch.rank() + 2, .parameters = part.parameters, .returns = true};
  for (std::size_t i = part.first_operand; i < part.first_operand + part.operands(); ++i)
    s.access.push_back(
        scalar_or_strided(Dims(space.strides[i].span().first(static_cast<std::size_t>(s.rank)))));
  return s;
}

/// Definitions that shaders/attention.glsl asks for, and the functions of the kernels.
std::string make_text(const Step& step, const Space& space, const std::vector<Part>& parts, const Blocking& b,
                      bool vector_loads, const GlslOptions& options) {
  GlslNeeds needs;
  needs.memory(DType::f32);
  for (const char* function : {"f_exp", "f_log", "constants"}) needs.calls.emplace(function);
  std::string functions, slots, integers, loads;
  for (const Part& part : parts) {
    const GlslEpilogue epilogue(*part.kernel, shape(space, part), part.name);
    needs.calls.insert(epilogue.needs().calls.begin(), epilogue.needs().calls.end());
    needs.int64 |= epilogue.needs().int64;
    needs.bytes |= epilogue.needs().bytes;
    needs.doubles |= epilogue.needs().doubles;
    functions += epilogue.function();
    slots += epilogue.slot_members();
    integers += epilogue.integer_members();
    loads += epilogue.load("args.");
  }
  std::string coordinates, names;
  if (!space.batch.empty()) coordinates = "uint batch_left = batch; ";
  for (int d = space.batch.rank() - 1; d >= 0; --d) {
    coordinates += fmt::format("const int batch_{0} = int(batch_left % uint(args.batch_extents[{0}])); ", d);
    coordinates += fmt::format("batch_left /= uint(args.batch_extents[{}]); ", d);
    names.insert(0, fmt::format("batch_{}, ", d));
  }

  std::string text;
  append_glsl_preamble(needs, options, text);
  append_glsl_functions(needs, text);
  text += functions;
  text += fmt::format("#define LANE_ROWS {}\n#define LANE_COLUMNS {}\n", b.lane_rows, b.lane_columns);
  text += fmt::format("#define TILE_ROWS {}\n#define TILE_COLUMNS {}\n", b.tile_rows, kTileColumns);
  text += fmt::format("#define EACH {}\n", b.each);
  if (vector_loads) text += "#define VECTOR_LOADS\n";
  if (step.causal.fill >= 0) text += "#define CAUSAL\n";
  text += fmt::format("#define KERNEL_SLOTS {}\n#define KERNEL_INTEGERS {}\n", one_line(slots),
                      one_line(integers));
  text += fmt::format("#define KERNEL_BEGIN {}\n", one_line(loads));
  text += fmt::format("#define KERNEL_BATCH(batch) {}\n", coordinates);
  text += fmt::format("#define SCORE(raw, query, key) score_of(raw, {}query, key)\n", names);
  text += fmt::format("#define GRADIENT(d_score, raw, query, key) gradient_of(d_score, raw, {}query, key)\n",
                      names);
  return text + whole_shader_text(step.kind == StepKind::attention          ? "attention_forward"
                                  : step.kind == StepKind::attention_grad_q ? "attention_grad_q"
                                                                            : "attention_grad_kv");
}

/// Loop iterations of the busiest invocation: every level of every loop.
std::int64_t iterations(const Step& step, const Space& space, const Blocking& b, std::int64_t tasks_each) {
  const std::int64_t d = space.size(Axis::d), e = space.size(Axis::e);
  const bool forward = step.kind == StepKind::attention;
  const std::int64_t along =
      space.size(step.kind == StepKind::attention_grad_kv ? Axis::queries : Axis::keys);
  const auto product = [](std::int64_t length) { return length / 4 + length % 4 + 2; };
  std::int64_t block = product(d) + b.tile_rows + b.columns() + 4;
  block += forward ? b.tile_rows + 1 : product(e);
  if (step.kind == StepKind::attention_grad_kv) block += b.columns() + 1;
  if (step.kind == StepKind::attention_grad_kv && step.causal.fill >= 0) block += b.columns() + 1;
  const std::int64_t blocks = (along + b.columns() - 1) / b.columns();
  const std::int64_t named = static_cast<std::int64_t>(named_operands(step).size());
  return tasks_each * (blocks * block + b.rows() + b.tile_rows * (b.lane_columns + 1) +
                       named * (space.batch.rank() + 1) + 2);
}

}  // namespace

void encode_attention(Encoder& encoder, const Step& step) {
  Context& context = encoder.context;
  const Capabilities& can = context.device->capabilities();
  const Space space = make_space(step);
  const std::int64_t m = space.size(Axis::queries), n = space.size(Axis::keys), d = space.size(Axis::d),
                     e = space.size(Axis::e);
  const bool of_keys = step.kind == StepKind::attention_grad_kv;
  const std::int64_t rows = of_keys ? n : m;
  const std::int64_t batches = space.batches();
  if (batches * rows == 0) return;
  if (step.dtype != DType::f32)
    throw DTypeError(fmt::format("{} has no kernel on {}", name(step.dtype), context.device->name()));
  if (std::max(d, e) > kMaxHead)
    throw ShapeError(fmt::format("heads of {} are larger than {}", std::max(d, e), kMaxHead));

  const std::vector<Named> named = named_operands(step);
  const std::vector<Part> parts = kernels(step);
  const std::int64_t kept = step.kind == StepKind::attention          ? e
                            : step.kind == StepKind::attention_grad_q ? d
                                                                      : std::max(d, e);
  const Blocking b = choose_blocking(can, rows, kept, of_keys);
  bool vector_loads = !can.scalar_loads;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const bool multiplied = named[i].operand < static_cast<std::size_t>(step.named_operands());
    if (multiplied && named[i].columns != Axis::none)
      vector_loads = vector_loads && space.stride(named[i].operand, named[i].columns) == 1;
  }

  Hash128 key;
  key.mix(fmt::format("attention {} {} {} {} {} {} {}", static_cast<int>(step.kind), b.lane_rows,
                      b.lane_columns, b.tile_rows, b.each, vector_loads, step.causal.fill >= 0));
  for (const Part& part : parts) {
    for (const Hash128& h : {part.kernel->hash, shape(space, part).hash()}) {
      key.mix(h.lo);
      key.mix(h.hi);
    }
  }
  const VkPipeline pipeline = context.pipelines.generated(
      key, step.name(), false, [&] { return make_text(step, space, parts, b, vector_loads, context.glsl); });

  // As shaders/attention.glsl declares it.
  TableWriter& table = encoder.table;
  const std::uint32_t block = table.begin();
  std::vector<std::int64_t> biases;
  for (const Named& operand : named) {
    Dims extents = space.batch, strides = space.batch_strides(operand.operand);
    for (Axis axis : {operand.rows, operand.columns}) {
      extents.push_back(space.size(axis));
      strides.push_back(space.stride(operand.operand, axis));
    }
    std::int64_t reach = 0;
    for (int i = 0; i < extents.rank(); ++i)
      reach += std::abs(strides[i]) * std::max<std::int64_t>(extents[i] - 1, 0);
    TableWriter::check_fits(reach, step);
    biases.push_back(bias(extents, strides));
    table.address(step.operands[operand.operand], biases.back());
  }
  for (std::int32_t scalar : {step.causal.fill, step.causal.offset_scalar}) {
    if (scalar >= 0) {
      table.scalar(scalar);
    } else {
      table.integer(0, step);
      table.integer(0, step);
    }
  }
  for (const Part& part : parts)
    arguments(step, space, part)
        .write_slots(table, std::span(step.scalars).subspan(part.first_scalar, part.kernel->scalars.size()));
  for (std::int64_t value : {batches, m, n, d, e, std::int64_t{space.batch.rank()}})
    table.integer(value, step);
  for (int i = 0; i < kMaxBatchRank; ++i) table.integer(i < space.batch.rank() ? space.batch[i] : 1, step);
  table.integer(step.causal.offset, step);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Dims strides = space.batch_strides(named[i].operand);
    table.integer(biases[i], step);
    table.integer(space.stride(named[i].operand, named[i].rows), step);
    table.integer(space.stride(named[i].operand, named[i].columns), step);
    for (int k = 0; k < kMaxBatchRank; ++k) table.integer(k < strides.rank() ? strides[k] : 0, step);
  }
  for (const Part& part : parts) arguments(step, space, part).write_integers(table);

  const std::int64_t tasks = (rows + b.rows() - 1) / b.rows() * batches;
  TableWriter::check_fits(tasks, step);
  const std::uint32_t groups = encoder.groups(tasks, 1);
  const std::int64_t tasks_each = (tasks + groups - 1) / groups;
  encoder.dispatch(step, pipeline, block, groups, iterations(step, space, b, tasks_each));
}

}  // namespace caldera::vulkan
