#include "engine/device/vulkan/steps/contract_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/product_problem.h"
#include "engine/device/vulkan/products/product_text.h"
#include "engine/device/vulkan/products/product_variants.h"
#include "engine/device/vulkan/record/argument_block.h"
#include "engine/device/vulkan/steps/kernel_arguments.h"
#include "engine/device/vulkan/steps/region_step.h"

namespace caldera::vulkan {
namespace {

constexpr int kMostProductBatches = kMaxRank - 3;  // less M, N, K

/// Writes one operand's View.
void write_view(ArgumentBlock& block, const ProductProblem::View& view, std::int64_t bias) {
  block.integers("views", {bias, view.rows, view.columns});
  for (int d = 0; d < kMostProductBatches; ++d)
    block.integer("views", d < view.batch.rank() ? view.batch[d] : 0);
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

/// How A (0) or B (1) is in memory in all segments: one text serves all of them.
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

/// One product of a dispatch.
struct Product {
  std::size_t number;  // among the joined steps
  const Step* step;
  const ContractStep* contract;
  ProductProblem problem;
  ProductShape shape;
};

Product make_product(const Encoder& encoder, std::span<const Step> joined, std::size_t number) {
  const Step& step = joined[number];
  const auto& contract = step.as<ContractStep>();
  Product product{number, &step, &contract, make_problem(step), {}};
  const ProductProblem& p = product.problem;
  ProductShape& shape = product.shape;
  shape = {.type = step.dtype,
           .batches = p.batches(),
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
  return product;
}

/// For a product, or for one and another that follows it; with what they end with, if there is such.
PipelinePtr make_pipeline(const Encoder& encoder, std::span<const Product* const> products,
                          const ProductForm& form, const std::optional<FinishingRegions>& finish) {
  Context& context = encoder.context;
  const ProductKernel& kernel = form.kernel;
  const Product& first = *products[0];
  if (const std::string name = embedded_name(*first.contract, form, context.glsl); !name.empty() && !finish)
    return context.pipelines.embedded(name, kernel.embedded_constants, kernel.full_subgroups);
  Hash128 key = form.hash();
  std::vector<GlslEpilogue::Shape> shapes;
  for (const Product* product : products) {
    if (!product->contract->epilogue) continue;
    const ProductProblem& p = product->problem;
    GlslEpilogue::Shape& shape = shapes.emplace_back();
    shape.rank = p.batch.rank() + 2;
    for (std::size_t i = 2 * form.segments(); i < p.views.size(); ++i)
      shape.access.push_back(scalar_or_strided(view_strides(p.views[i])));
    for (const Hash128& h : {product->contract->epilogue->hash, shape.hash()}) {
      key.mix(h.lo);
      key.mix(h.hi);
    }
  }
  if (finish) {
    key.mix(finish->key.lo);
    key.mix(finish->key.hi);
  }
  const auto text = [&] {
    std::optional<GlslFinish> end;
    if (finish) end = finish->text();
    std::vector<GlslEpilogue> epilogues;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      epilogues.emplace_back(*products[i]->contract->epilogue, shapes[i], kEpilogueNames[i], context.glsl);
    return product_text(form, epilogues, first.problem.batch.rank(), end ? &*end : nullptr, context.glsl);
  };
  std::string name = first.step->name();
  if (products.size() > 1) name += ", " + products[1]->step->name();
  if (finish) name += ", then " + finish->name;
  return context.pipelines.generated(key, name, kernel.full_subgroups, text, kernel.constants);
}

/// What the pipeline depends on, beyond what joined steps have in common. One dispatch serves
/// products for which it is equal.
struct Text {
  const ProductVariant* variant;
  ProductForm form;
  std::vector<Access> access;  // of the epilogue's operands
  int batch_rank = 0;

  Text(const Encoder& encoder, const Product& product, const ProductVariant& variant)
      : variant(&variant),
        form(make_form(encoder, *product.step, *product.contract, product.shape, variant)),
        batch_rank(product.problem.batch.rank()) {
    const auto& views = product.problem.views;
    for (std::size_t i = 2 * form.segments(); i < views.size(); ++i)
      access.push_back(scalar_or_strided(view_strides(views[i])));
  }
  bool operator==(const Text& other) const { return access == other.access && differs_in_epilogue(other); }
  /// Equal, but for the epilogue perhaps.
  bool differs_in_epilogue(const Text& other) const {
    return variant == other.variant && form.hash() == other.form.hash() &&
           form.kernel.constants == other.form.kernel.constants &&
           form.kernel.embedded_constants == other.form.kernel.embedded_constants &&
           batch_rank == other.batch_rank;
  }
};

/// Writes the product's arguments. `epilogues`: the products whose epilogues the text has.
void write_product_block(TableWriter& table, const Product& product, const ProductForm& form,
                         std::span<const Product* const> epilogues) {
  const Step& step = *product.step;
  const ContractStep& contract = *product.contract;
  const ProductProblem& p = product.problem;
  const std::size_t named = 2 * form.segments();
  std::vector<std::int64_t> biases;
  for (std::size_t i = 0; i < named; ++i) {
    const std::int64_t k = contract.segments[i / 2].k;
    biases.push_back(
        view_bias(i % 2 == 0 ? view_extents(p, p.m, k) : view_extents(p, k, p.n), p.views[i], step));
  }
  static const DeclaredBlock kDeclared("matmul", shader_text("matmul"), "Block");
  ArgumentBlock block(table, step, kDeclared);
  for (std::size_t s = 0; s < form.segments(); ++s) {
    block.address("segments", step.operands[2 * s], biases[2 * s]);
    block.address("segments", step.operands[2 * s + 1], biases[2 * s + 1]);
    if (contract.segments[s].scale >= 0)
      block.scalar("segments", contract.segments[s].scale);
    else
      block.integers("segments", {unit_scale(form.scale).low, unit_scale(form.scale).high});
  }
  TableWriter& slots = block.generated("KERNEL_SLOTS");
  if (contract.epilogue) {
    for (const Product* one : epilogues)
      epilogue_arguments(*one->step, one->problem).write_slots(slots, one->step->scalars);
  } else {
    biases.push_back(view_bias(view_extents(p, p.m, p.n), p.views[named], step));
    slots.address(step.operands[named], biases[named]);
  }
  block.integer("batches", p.batches());
  block.integer("m", p.m);
  block.integer("n", p.n);
  block.integer("batch_rank", p.batch.rank());
  for (int d = 0; d < kMostProductBatches; ++d)
    block.integer("batch_extents", d < p.batch.rank() ? p.batch[d] : 1);
  for (const Segment& segment : contract.segments) block.integer("k", segment.k);
  for (std::size_t i = 0; i < biases.size(); ++i) write_view(block, p.views[i], biases[i]);
  TableWriter& integers = block.generated("KERNEL_INTEGERS");
  if (contract.epilogue) {
    for (const Product* one : epilogues)
      epilogue_arguments(*one->step, one->problem).write_integers(integers);
  }
  block.end();
  table.align();
}

/// What the only dispatch of products ends with, if it does.
std::optional<FinishingRegions> finishing_of(Encoder& encoder, const ProductForm& form,
                                             const ProductExtents& extents, std::int64_t workgroups,
                                             std::int64_t iterations) {
  const Capabilities& can = encoder.context.device->capabilities();
  const bool loops = can.loop_limit == 0 || iterations <= can.loop_limit / 2;
  if (encoder.finishing.empty() || form.kernel.matrices || !loops || workgroups > UINT32_MAX ||
      can.portability || encoder.recording.counters == Counters::kMost)
    return {};
  return encode_finishing(encoder, extents.lanes, can.shared_memory - extents.shared_bytes);
}

/// One dispatch of products whose texts are equal, side by side; or of two, the second after the
/// first.
void dispatch_product(Encoder& encoder, std::span<const Product* const> products,
                      const ProductVariant& variant, const ProductForm& form, bool follows, bool is_only) {
  Context& context = encoder.context;
  const Product& first = *products[0];
  const auto extents = [&](const Product& product) {
    return variant.family->extents(variant, product.shape, context.device->capabilities());
  };
  std::int64_t tiles = 0;
  for (const Product* product : products) {
    const std::int64_t own = extents(*product).tiles(product->shape);
    TableWriter::check_fits(own, *product->step);
    tiles = std::max(tiles, own);
  }
  const std::uint32_t groups = encoder.groups(tiles, extents(first).units);
  const auto count = static_cast<std::uint32_t>(products.size());
  std::int64_t iterations = 0;
  for (const Product* product : products)
    iterations = std::max(iterations, extents(*product).iterations(product->shape, groups));
  if (follows) iterations *= count;

  std::optional<FinishingRegions> finish;
  if (is_only) finish = finishing_of(encoder, form, extents(first), std::int64_t{groups} * count, iterations);
  const PipelinePtr pipeline = make_pipeline(encoder, follows ? products : products.first(1), form, finish);
  const std::uint32_t block = encoder.table.begin();
  for (const Product* product : products)
    write_product_block(encoder.table, *product, form, follows ? products : std::span(&product, 1));
  if (finish) iterations += finish->iterations;
  encoder.dispatch(*first.step, pipeline, block, groups, iterations, follows ? 1 : count);
  if (finish) {
    encoder.recording.dispatches.back().finish_block = finish->block;
    encoder.recording.dispatches.back().finish_counter = encoder.recording.counters++;
  }
}

/// Whether one text may compute the product after the other: each invocation the same elements of both.
bool may_follow(const Product& product, const Text& text, const Product& before, const Text& text_before) {
  const ProductProblem& a = before.problem;
  const ProductProblem& b = product.problem;
  return text.differs_in_epilogue(text_before) && a.batch == b.batch && a.m == b.m && a.n == b.n;
}

/// The encoder's, or the tuner's choice for the product with most work.
const ProductVariant& choose_variant(const Encoder& encoder, const std::vector<Product>& products) {
  if (encoder.forced != nullptr) return *encoder.forced;
  Context& context = encoder.context;
  const Product& largest = *std::ranges::max_element(
      products, {}, [](const Product& p) { return p.shape.batches * p.shape.m * p.shape.n * p.shape.k; });
  return context.tuner.choose(largest.shape, context.device->capabilities(), context.product_rates,
                              [&](const ProductVariant& v, double stop_at) {
                                return encoder.time_product(*largest.step, v, stop_at);
                              });
}

/// Batches of one ahead of the others, so that products with and without batches have one text.
void give_equal_ranks(std::vector<Product>& products) {
  int most = 0;
  for (const Product& product : products) most = std::max(most, product.problem.batch.rank());
  for (Product& product : products) {
    while (product.problem.batch.rank() < most) {
      product.problem.batch.insert(0, 1);
      for (ProductProblem::View& view : product.problem.views) view.batch.insert(0, 0);
    }
  }
}

}  // namespace

void encode_contract(Encoder& encoder, std::span<const Step> joined) {
  Context& context = encoder.context;
  std::vector<Product> products;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    Product product = make_product(encoder, joined, i);
    if (product.shape.batches * product.shape.m * product.shape.n != 0)
      products.push_back(std::move(product));
  }
  if (products.empty()) return;
  if (!context.supports(joined[0].dtype))
    throw DTypeError(
        fmt::format("{} has no kernel on {}", name(joined[0].dtype), context.device->physical().info.name));
  give_equal_ranks(products);
  const Capabilities& can = context.device->capabilities();
  const ProductVariant& preferred = choose_variant(encoder, products);
  const bool follows = products.size() == 2 && joined[1].follows;
  std::vector<std::pair<Text, std::vector<const Product*>>> dispatches;
  for (const Product& product : products) {
    const ProductVariant& variant =
        encoder.forced != nullptr || why_not(preferred, product.shape, can).empty()
            ? preferred
            : default_product_variant(product.shape, can, context.product_rates);
    encoder.recording.variants.push_back(
        {encoder.step + product.number, {variant.name, context.tuner.why_not_pinned(product.shape, can)}});
    Text text(encoder, product, variant);
    const auto alike = std::ranges::find_if(dispatches, [&](const auto& d) {
      return follows ? may_follow(product, text, *d.second[0], d.first) : d.first == text;
    });
    if (alike == dispatches.end())
      dispatches.emplace_back(std::move(text), std::vector<const Product*>{&product});
    else
      alike->second.push_back(&product);
  }
  for (const auto& [text, alike] : dispatches) {
    dispatch_product(encoder, alike, *text.variant, text.form, alike.size() > 1 && follows,
                     dispatches.size() == 1);
    for (const Product* product : alike) encoder.computes(product->number);
    if (follows) encoder.barrier_next = alike.size() == 1 && &alike == &dispatches[0].second;
  }
}

}  // namespace caldera::vulkan
