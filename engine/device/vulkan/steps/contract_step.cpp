#include "engine/device/vulkan/steps/contract_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine/device/vulkan/products/product_problem.h"
#include "engine/device/vulkan/products/product_text.h"
#include "engine/device/vulkan/products/product_variants.h"
#include "engine/device/vulkan/steps/kernel_arguments.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

// As in shaders/matmul/matmul.glsl.
constexpr int kMaxBatchRank = 5;  // kMaxRank less M, N, K

/// Writes one operand's View of shaders/matmul/matmul.glsl.
void write_view(TableWriter& table, const Step& step, const ProductProblem::View& view, std::int64_t bias) {
  table.integer(bias, step);
  table.integer(view.rows, step);
  table.integer(view.columns, step);
  for (int d = 0; d < kMaxBatchRank; ++d) table.integer(d < view.batch.rank() ? view.batch[d] : 0, step);
}

/// The operands behind those of the segments.
KernelArguments epilogue_arguments(const Step& step, const ProductProblem& p) {
  const auto named = static_cast<std::size_t>(step.named_operands());
  std::vector<KernelView> views;
  for (std::size_t i = named; i < step.operands.size(); ++i) {
    KernelView view;
    view.operand = &step.operands[i];
    view.is_index = view.operand->buffer < 0;
    view.strides = view_strides(p.views[i]);
    view.access = scalar_or_strided(view.strides);
    views.push_back(view);
  }
  return {step, view_extents(p, p.m, p.n), std::move(views)};
}

/// The types of A (0) or B (1) in memory, a segment each.
std::vector<DType> memory_types(const Encoder& encoder, const Step& step, const ContractStep& contract,
                                std::size_t side) {
  std::vector<DType> types;
  for (std::size_t s = 0; s < contract.segments.size(); ++s) {
    const Operand& operand = step.operands[2 * s + side];
    const DType type = encoder.plan.buffers[static_cast<std::size_t>(operand.buffer)].dtype;
    if (type != step.dtype && (step.dtype != DType::f32 || !is_half(type)))
      throw DTypeError(fmt::format("a product of {} cannot read {}", name(step.dtype), name(type)));
    types.push_back(type);
  }
  return types;
}

/// How A (0) or B (1) lies in memory in all segments: one text serves all of them.
ProductLayout layout_of(const ContractStep& contract, const ProductProblem& p, std::size_t side) {
  ProductLayout common = ProductLayout::strided;
  for (std::size_t s = 0; s < contract.segments.size(); ++s) {
    const ProductProblem::View& view = p.views[2 * s + side];
    const std::int64_t along_k = side == 0 ? view.columns : view.rows;
    const std::int64_t across_k = side == 0 ? view.rows : view.columns;
    const ProductLayout own = along_k == 1    ? ProductLayout::along_k
                              : across_k == 1 ? ProductLayout::across_k
                                              : ProductLayout::strided;
    common = s == 0 || own == common ? own : ProductLayout::strided;
  }
  return common;
}

/// What the text is made for.
ProductForm make_form(const Encoder& encoder, const Step& step, const ContractStep& contract,
                      const ProductShape& shape, const ProductVariant& variant) {
  const Context& context = encoder.context;
  ProductForm form;
  form.type = step.dtype;
  form.variant = &variant;
  form.kernel = variant.family->kernel(variant, shape, context.device->capabilities(), context.product_rates);
  for (std::size_t side : {0U, 1U}) form.memory[side] = memory_types(encoder, step, contract, side);
  for (const Segment& segment : contract.segments) {
    if (segment.scale < 0) continue;
    const DType scale = encoder.plan.scalars[static_cast<std::size_t>(segment.scale)];
    if (form.scaled && scale != form.scale)
      throw DTypeError(fmt::format("factors of {} and {} in one contraction", name(form.scale), name(scale)));
    form.scaled_segment = form.scaled ? -1 : static_cast<int>(&segment - contract.segments.data());
    form.scaled = true;
    form.scale = scale;
  }
  return form;
}

/// The name of a shader that was compiled when Caldera was built; empty if there is none for the form.
std::string embedded_name(const ContractStep& contract, const ProductForm& form, const GlslOptions& options) {
  if (contract.epilogue || options.in_words(form.type) || form.segments() != 1 || form.scaled ||
      !form.plain_memory() || form.kernel.embedded.empty())
    return {};
  return fmt::format(fmt::runtime(form.kernel.embedded), product_type_name(form.type));
}

PipelinePtr make_pipeline(const Encoder& encoder, const Step& step, const ContractStep& contract,
                          const ProductProblem& p, const ProductForm& form) {
  Context& context = encoder.context;
  const ProductKernel& kernel = form.kernel;
  if (const std::string name = embedded_name(contract, form, context.glsl); !name.empty())
    return context.pipelines.embedded(name, kernel.embedded_constants, kernel.full_subgroups);
  Hash128 key = form.hash();
  GlslEpilogue::Shape epilogue_shape{.rank = p.batch.rank() + 2};
  if (contract.epilogue) {
    for (std::size_t i = 2 * form.segments(); i < p.views.size(); ++i)
      epilogue_shape.access.push_back(scalar_or_strided(view_strides(p.views[i])));
    for (const Hash128& h : {contract.epilogue->hash, epilogue_shape.hash()}) {
      key.mix(h.lo);
      key.mix(h.hi);
    }
  }
  const auto text = [&] {
    if (!contract.epilogue) return product_text(form, nullptr, 0, context.glsl);
    const GlslEpilogue epilogue(*contract.epilogue, epilogue_shape, "epilogue", context.glsl);
    return product_text(form, &epilogue, p.batch.rank(), context.glsl);
  };
  return context.pipelines.generated(key, step.name(), kernel.full_subgroups, text, kernel.constants);
}

}  // namespace

void encode_contract(Encoder& encoder, const Step& step, const ContractStep& contract) {
  Context& context = encoder.context;
  const ProductProblem p = make_problem(step);
  const std::int64_t batches = p.batches();
  if (batches * p.m * p.n == 0) return;
  const Capabilities& can = context.device->capabilities();
  if (!context.supports(step.dtype))
    throw DTypeError(
        fmt::format("{} has no kernel on {}", name(step.dtype), context.device->physical().info.name));

  ProductShape shape{.type = step.dtype,
                     .batches = batches,
                     .m = p.m,
                     .n = p.n,
                     .segments = static_cast<int>(contract.segments.size()),
                     .epilogue = contract.epilogue != nullptr,
                     .a_layout = layout_of(contract, p, 0),
                     .b_layout = layout_of(contract, p, 1)};
  shape.a = memory_types(encoder, step, contract, 0)[0];
  shape.b = memory_types(encoder, step, contract, 1)[0];
  for (std::size_t side : {0U, 1U}) {
    for (DType type : memory_types(encoder, step, contract, side))
      shape.mixed_memory |= type != (side == 0 ? shape.a : shape.b);
  }
  for (const Segment& segment : contract.segments) {
    shape.k += segment.k;
    shape.scaled |= segment.scale >= 0;
  }
  const ProductVariant& variant = encoder.forced != nullptr
                                      ? *encoder.forced
                                      : context.tuner.choose(shape, can, context.product_rates,
                                                             [&](const ProductVariant& v, double stop_at) {
                                                               return encoder.time_product(step, v, stop_at);
                                                             });
  encoder.recording.variants.push_back(
      {encoder.step, {variant.name, context.tuner.why_not_pinned(shape, can)}});
  const ProductForm form = make_form(encoder, step, contract, shape, variant);
  const ProductExtents extents = variant.family->extents(variant, shape, can);
  const std::int64_t tiles = extents.tiles(shape);
  TableWriter::check_fits(tiles, step);
  const PipelinePtr pipeline = make_pipeline(encoder, step, contract, p, form);

  TableWriter& table = encoder.table;
  const std::size_t named = 2 * form.segments();
  std::vector<std::int64_t> biases;
  for (std::size_t i = 0; i < named; ++i) {
    const std::int64_t k = contract.segments[i / 2].k;
    biases.push_back(
        view_bias(i % 2 == 0 ? view_extents(p, p.m, k) : view_extents(p, k, p.n), p.views[i], step));
  }
  // As shaders/matmul/matmul.glsl declares it.
  const std::uint32_t block = table.begin();
  for (std::size_t s = 0; s < form.segments(); ++s) {
    table.address(step.operands[2 * s], biases[2 * s]);
    table.address(step.operands[2 * s + 1], biases[2 * s + 1]);
    if (contract.segments[s].scale >= 0) {
      table.scalar(contract.segments[s].scale);
    } else {
      table.integer(unit_scale(form.scale).low, step);
      table.integer(unit_scale(form.scale).high, step);
    }
  }
  if (contract.epilogue) {
    epilogue_arguments(step, p).write_slots(table, step.scalars);
  } else {
    biases.push_back(view_bias(view_extents(p, p.m, p.n), p.views[named], step));
    table.address(step.operands[named], biases[named]);
  }
  for (std::int64_t value : {batches, p.m, p.n, std::int64_t{p.batch.rank()}}) table.integer(value, step);
  for (int d = 0; d < kMaxBatchRank; ++d) table.integer(d < p.batch.rank() ? p.batch[d] : 1, step);
  for (const Segment& segment : contract.segments) table.integer(segment.k, step);
  for (std::size_t i = 0; i < biases.size(); ++i) write_view(table, step, p.views[i], biases[i]);
  if (contract.epilogue) epilogue_arguments(step, p).write_integers(table);

  const std::uint32_t groups = encoder.groups(tiles, extents.units);
  encoder.dispatch(step, pipeline, block, groups, extents.iterations(shape, groups));
}

}  // namespace caldera::vulkan
