// Puts the shader of an attention step together from its text and the kernels, and writes its arguments.
#include "engine/device/vulkan/steps/attention_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/attention/attention_families.h"
#include "engine/device/vulkan/glsl/epilogue.h"
#include "engine/device/vulkan/glsl/memory.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/pipelines/shader_parts.h"
#include "engine/device/vulkan/record/argument_block.h"
#include "engine/device/vulkan/steps/kernel_arguments.h"

namespace caldera::vulkan {
namespace {

using Axis = AttentionAxis;

constexpr int kMostAttentionBatches = kMaxRank - 4;  // less M, N, D, E

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

std::vector<Part> kernels(const Step& step, const AttentionStep& attention) {
  const auto named = static_cast<std::size_t>(step.named_operands());
  std::vector<Part> parts{{attention.score.get(), "score_of", 1, named, 0}};
  if (attention.gradient)
    parts.push_back({attention.gradient.get(), "gradient_of", 2, named + parts[0].operands(),
                     attention.score->scalars.size()});
  return parts;
}

KernelArguments arguments(const Step& step, const AttentionSpace& space, const Part& part) {
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

GlslEpilogue::Shape shape(const AttentionSpace& space, const Part& part) {
  GlslEpilogue::Shape s{.rank = space.batch.rank() + 2, .parameters = part.parameters, .returns = true};
  for (std::size_t i = part.first_operand; i < part.first_operand + part.operands(); ++i)
    s.access.push_back(
        scalar_or_strided(Dims(space.strides[i].span().first(static_cast<std::size_t>(s.rank)))));
  return s;
}

/// How the matrices of a step are in memory: see AttentionStep.
struct MatrixTypes {
  DType operands, results;
};

MatrixTypes matrix_types(const Plan& plan, const Step& step) {
  const auto type = [&](std::size_t operand) {
    return plan.buffers[static_cast<std::size_t>(step.operands[operand].buffer)].dtype;
  };
  return {type(0), type(step.first_output())};
}

const char* shader_name(AttentionPass pass) {
  switch (pass) {
    case AttentionPass::forward:
      break;
    case AttentionPass::grad_q:
      return "attention_grad_q";
    case AttentionPass::grad_kv:
      return "attention_grad_kv";
    case AttentionPass::grad_qkv:
      break;
  }
  return "attention_forward";
}

/// Definitions that shaders/attention/attention.glsl asks for, and the functions of the kernels.
std::string make_text(const AttentionStep& attention, const MatrixTypes& types, const AttentionSpace& space,
                      const std::vector<Part>& parts, const AttentionBlocking& b, bool vector_loads,
                      const GlslOptions& options) {
  GlslNeeds needs;
  for (DType type : {DType::f32, types.operands, types.results}) needs.memory(type);
  const std::string loaded = glsl_load(types.operands, glsl_memory_at(types.operands, "address", options),
                                       "element", options, needs.calls);
  const std::string stored = glsl_store(types.results, glsl_memory_at(types.results, "(z).address", options),
                                        "element", "(value)", options, needs.calls);
  needs.subgroups = b.one_subgroup;
  for (const char* function : {"f_exp", "constants"}) needs.calls.emplace(function);
  std::string functions, slots, integers, loads;
  for (const Part& part : parts) {
    const GlslEpilogue epilogue(*part.kernel, shape(space, part), part.name, options);
    needs.add(epilogue.needs());
    functions += epilogue.function();
    slots += epilogue.slot_members();
    integers += epilogue.integer_members();
    loads += epilogue.load("args.");
  }
  const BatchCoordinates batch = batch_coordinates(space.batch.rank());

  std::string text;
  append_glsl_preamble(needs, options, text);
  append_glsl_functions(needs, text);
  text += functions;
  text += fmt::format("#define LOADED(address, element) ({})\n", loaded);
  text += fmt::format("#define STORE(z, element, value) ({})\n", stored);
  text += fmt::format("#define LANE_ROWS {}\n#define LANE_COLUMNS {}\n", b.lane_rows, b.lane_columns);
  text += fmt::format("#define TILE_ROWS {}\n#define TILE_COLUMNS {}\n", b.tile_rows, b.tile_columns);
  text += fmt::format("#define EACH {}\n", b.each);
  text += fmt::format("#define SYNC {}\n", b.one_subgroup ? "subgroupBarrier" : "barrier");
  text += b.family->definitions(b, types.operands);
  if (b.small_code) text += "#define SMALL_CODE\n";
  if (vector_loads) text += "#define VECTOR_LOADS\n";
  if (attention.causal.fill >= 0) text += "#define CAUSAL\n";
  if (attention.causal.in_parts) text += "#define IN_PARTS\n";
  text += fmt::format("#define KERNEL_SLOTS {}\n#define KERNEL_INTEGERS {}\n", one_line(slots),
                      one_line(integers));
  text += fmt::format("#define KERNEL_BEGIN {}\n", one_line(loads));
  text += fmt::format("#define KERNEL_BATCH(batch) {}\n", batch.declarations);
  text += fmt::format("#define SCORE(raw, query, key) score_of(raw, {}query, key)\n", batch.names);
  text += fmt::format("#define GRADIENT(d_score, raw, query, key) gradient_of(d_score, raw, {}query, key)\n",
                      batch.names);
  return text +
         whole_shader_text(shader_name(attention.pass), {"attention_family", b.family->text(attention.pass)});
}

std::uint32_t write_attention_block(TableWriter& table, const Step& step, const AttentionStep& attention,
                                    const AttentionSpace& space, const std::vector<AttentionOperand>& named,
                                    const std::vector<Part>& parts) {
  static const DeclaredBlock kDeclared("attention", shader_text("attention"));
  const std::uint32_t begin = table.begin();
  ArgumentBlock block(table, step, kDeclared);
  std::vector<std::int64_t> biases;
  for (const AttentionOperand& operand : named) {
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
    block.address("memory", step.operands[operand.operand], biases.back());
  }
  const auto scalar = [&](const char* name, std::int32_t index) {
    if (index >= 0)
      block.scalar(name, index);
    else
      block.integers(name, {0, 0});
  };
  scalar("fill", attention.causal.fill);
  scalar("offset_scalar", attention.causal.offset_scalar);
  for (const Part& part : parts)
    arguments(step, space, part)
        .write_slots(block.generated("KERNEL_SLOTS"),
                     std::span(step.scalars).subspan(part.first_scalar, part.kernel->scalars.size()));
  block.integer("batches", space.batches());
  block.integer("queries", space.size(Axis::queries));
  block.integer("keys", space.size(Axis::keys));
  block.integer("d", space.size(Axis::d));
  block.integer("e", space.size(Axis::e));
  block.integer("batch_rank", space.batch.rank());
  for (int i = 0; i < kMostAttentionBatches; ++i)
    block.integer("batch_extents", i < space.batch.rank() ? space.batch[i] : 1);
  block.integer("offset", attention.causal.offset);
  block.integer("query_step", attention.causal.one_query ? 0 : 1);
  block.integer("part_batches", attention.causal.in_parts ? space.batches() / space.batch[0] : 1);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Dims strides = space.batch_strides(named[i].operand);
    block.integers("views", {biases[i], space.stride(named[i].operand, named[i].rows),
                             space.stride(named[i].operand, named[i].columns)});
    for (int k = 0; k < kMostAttentionBatches; ++k)
      block.integer("views", k < strides.rank() ? strides[k] : 0);
  }
  for (const Part& part : parts)
    arguments(step, space, part).write_integers(block.generated("KERNEL_INTEGERS"));
  block.end();
  return begin;
}

}  // namespace

AttentionBlocking blocking_of(const Context& context, const AttentionStep& attention,
                              const AttentionSpace& space, DType memory) {
  return share_attention(*context.attention,
                         {attention, space, memory, context.device->capabilities(), context.few_cores},
                         context.glsl.exact_subgroup_size ? context.glsl.subgroup_size : 0);
}

void encode_attention(Encoder& encoder, const Step& step, const AttentionStep& attention) {
  Context& context = encoder.context;
  const AttentionSpace space(step);
  const std::int64_t d = space.size(Axis::d), e = space.size(Axis::e);
  if (step.dtype != DType::f32)
    throw DTypeError(fmt::format("{} has no kernel on {}", name(step.dtype), context.device->name()));
  if (std::max(d, e) > kMaxHeadSize)
    throw ShapeError(fmt::format("heads of {} are larger than {}", std::max(d, e), kMaxHeadSize));
  const auto type = [&](std::size_t k) {
    return encoder.plan.buffers[static_cast<std::size_t>(step.operands[k].buffer)].dtype;
  };
  if (!attention.stored.is_plain() || type(1) != type(0))
    throw DTypeError("keys as they are stored are read on the CPU alone (DeviceTraits::reads_stored_keys)");
  if (attention.pass == AttentionPass::grad_qkv)
    throw DTypeError(
        "all gradients of attention come from one step on the CPU alone "
        "(DeviceTraits::joins_attention_gradients)");
  const MatrixTypes types = matrix_types(encoder.plan, step);
  const AttentionBlocking b = blocking_of(context, attention, space, types.operands);
  if (b.tasks == 0) return;
  TableWriter::check_fits(b.tasks, step);

  const std::vector<AttentionOperand> named = attention_operands(step, attention);
  const std::vector<Part> parts = kernels(step, attention);
  bool vector_loads = b.family->loads_vectors() && types.operands == DType::f32 &&
                      !(context.device->capabilities().scalar_loads && context.few_cores);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const bool multiplied = named[i].operand < static_cast<std::size_t>(step.named_operands());
    if (multiplied && named[i].columns != Axis::none)
      vector_loads = vector_loads && space.stride(named[i].operand, named[i].columns) == 1;
  }

  Hash128 key;
  key.mix(fmt::format("attention {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", b.family->name(), b.slice,
                      b.piece, b.fours, static_cast<int>(attention.pass), name(types.operands),
                      name(types.results), b.lane_rows, b.lane_columns, b.tile_rows, b.tile_columns, b.each,
                      b.small_code, vector_loads, attention.causal.fill >= 0, attention.causal.in_parts));
  key.mix(fmt::format("{} {} {} {} {} {} {} {}", b.matrices.m, b.matrices.n, b.matrices.k, b.subgroups,
                      b.sub_rows, b.d_pad, b.e_pad, b.wide));
  for (const Part& part : parts) {
    for (const Hash128& h : {part.kernel->hash, shape(space, part).hash()}) {
      key.mix(h.lo);
      key.mix(h.hi);
    }
  }
  const PipelinePtr pipeline = context.pipelines.generated(
      key, step.name(), b.one_subgroup || b.family->full_subgroups(),
      [&] { return make_text(attention, types, space, parts, b, vector_loads, context.glsl); });

  const std::uint32_t block = write_attention_block(encoder.table, step, attention, space, named, parts);
  encoder.dispatch(step, pipeline, block, b.groups, b.iterations);
}

}  // namespace caldera::vulkan
