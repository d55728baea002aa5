// The row form: several walks along a row, with the row's reductions finished between them.
//
// A walk computes again, from loads, whatever it needs and earlier walks had: the row is in a near cache by
// then, and its length is no part of the shader. Where rows are short enough (KernelVariant::kept), lanes
// keep in registers what later walks need of their points, and the walks have no loops. Outputs are stored in
// the last walk, by the lane that read the point in every walk, after its loads; so they may be in the
// memory of operands.
#include <algorithm>
#include <utility>

#include "engine/device/vulkan/glsl/forms.h"
#include "engine/device/vulkan/glsl/online.h"
#include "engine/device/vulkan/glsl/reduction.h"
#include "engine/device/vulkan/glsl/space.h"
#include "engine/plan/kernel/row_walks.h"

namespace caldera {
namespace {

class RowWriter {
 public:
  explicit RowWriter(GlslForm& form)
      : form_(form),
        kernel_(form.kernel),
        body_(form.body),
        phases_(row_phases(form.kernel)),
        live_(live_values(form.kernel)),
        plan_(row_walks(form.kernel, form.variant.kept > 0)) {}

  void write();

 private:
  GlslReductions reductions_of(const RowWalk& walk) const;
  void row_values(int phase);
  void walk(const RowWalk& walk);
  void walk_online(const RowWalk& walk, GlslOnline online);
  void point(const RowWalk& walk, GlslReductions& reductions, int kept);
  void group(const RowWalk& walk, GlslReductions& reductions, const std::vector<bool>& used, int number);
  void load_ahead(const std::vector<bool>& used);
  std::string kept_value(std::size_t v, int kept) const;
  /// Points, or groups of neighbours, that a lane keeps.
  int kept_groups() const { return form_.variant.kept / form_.variant.width; }
  void store_row_values();
  bool reads_last() const;

  GlslForm& form_;
  const Kernel& kernel_;
  GlslBody& body_;
  const RowPhases phases_;
  const std::vector<bool> live_;
  const RowWalks plan_;
  bool share_once_ = false;
};

GlslReductions RowWriter::reductions_of(const RowWalk& walk) const {
  std::vector<GlslReduction> list;
  for (std::uint16_t v : walk.reductions)
    list.push_back({.combine = combine_of(kernel_.code[v].op),
                    .type = kernel_.code[v].type,
                    .name = fmt::format("v{}", v),
                    .few = form_.variant.kept > 0});
  return {std::move(list), body_};
}

/// What is one a row and follows from the reductions of the walks so far.
void RowWriter::row_values(int phase) {
  std::vector<bool> wanted(kernel_.code.size());
  for (std::size_t v = 0; v < wanted.size(); ++v)
    wanted[v] = live_[v] && phases_.per_row[v] && phases_.phase[v] == phase &&
                !is_row_reduction(kernel_.code[v].op) && !form_.evaluator.same_everywhere(v);
  form_.evaluator.evaluate(wanted);
}

/// Where a lane keeps value v of its point number `kept`, or of the point `e` of its group of that number.
std::string RowWriter::kept_value(std::size_t v, int kept) const {
  return fmt::format("h{}_{}{}", v, kept, form_.variant.width > 1 ? "[e]" : "");
}

/// The point of the row whose number is `r`, the lane's point number `kept` where the lane keeps values.
void RowWriter::point(const RowWalk& walk, GlslReductions& reductions, int kept) {
  GlslEvaluator& evaluator = form_.evaluator;
  std::vector<bool> computed = walk.computed;
  for (std::size_t v = 0; v < computed.size(); ++v) {
    const bool hoisted = evaluator.same_everywhere(v);
    if (hoisted) computed[v] = false;
    if (walk.recalled[v] && !hoisted)
      body_.line("const {} v{} = {};", glsl_type(kernel_.code[v].type), v, kept_value(v, kept));
  }
  if (form_.variant.width > 1) {
    // What is one load for all of the group stands ahead of its points.
    for (std::size_t v = 0; v < computed.size(); ++v) {
      const Instruction& i = kernel_.code[v];
      if (i.op == ScalarOp::load && form_.neighbours.one(i.a)) computed[v] = false;
    }
  }
  evaluator.evaluate(computed);
  for (std::size_t v = 0; v < computed.size(); ++v) {
    if (walk.computed[v] && !evaluator.same_everywhere(v) && plan_.kept[v])
      body_.line("{} = v{};", kept_value(v, kept), v);
  }
  for (std::size_t r = 0; r < walk.reductions.size(); ++r) {
    const Instruction& i = kernel_.code[walk.reductions[r]];
    reductions.add(r, glsl_convert(evaluator.value(i.a), i.type, body_.needs.calls));
  }
  if (form_.variant.width == 1) reductions.end_point();
  for (int o : walk.outputs)
    evaluator.store(o, evaluator.value(kernel_.outputs[static_cast<std::size_t>(o)].value),
                    fmt::format("o{}", form_.operands.output(o)));
}

/// The neighbours from point number `r` on, which were loaded.
void RowWriter::group(const RowWalk& walk, GlslReductions& reductions, const std::vector<bool>& used,
                      int number) {
  GlslNeighbours& neighbours = form_.neighbours;
  std::vector<int> stored;
  for (int o : walk.outputs) stored.push_back(form_.operands.output(o));
  std::vector<bool> computed = walk.computed;
  for (std::size_t v = 0; v < computed.size(); ++v) {
    if (form_.evaluator.same_everywhere(v)) computed[v] = false;
  }
  form_.evaluator.evaluate_once(computed);
  neighbours.declare_stores(stored);
  neighbours.open_each(used);
  point(walk, reductions, number);
  body_.close();
  reductions.end_point(form_.variant.width);
  neighbours.store(stored, {}, {});
}

/// All that the lane's groups read, before the first of them is computed.
void RowWriter::load_ahead(const std::vector<bool>& used) {
  for (int g = 0; g < kept_groups(); ++g) {
    form_.neighbours.take_group(g);
    form_.neighbours.declare_loads(used);
    form_.open_point(used, g);
    form_.neighbours.load(used, {}, {});
    form_.close_point();
  }
}

void RowWriter::walk(const RowWalk& walk) {
  if (walk.reductions.empty() && walk.outputs.empty()) return;
  std::vector<bool> used = form_.evaluator.operands_of(walk.computed);
  for (int o : walk.outputs) used[static_cast<std::size_t>(form_.operands.output(o))] = true;
  GlslReductions reductions = reductions_of(walk);
  reductions.declare();
  const bool several = form_.variant.width > 1;
  if (form_.variant.kept == 0) {
    form_.open_row(used);
    if (several) {
      form_.neighbours.declare_loads(used);
      form_.neighbours.load(used, {}, {});
      group(walk, reductions, used, 0);
    } else {
      point(walk, reductions, 0);
    }
    form_.close_row();
  } else if (several) {
    load_ahead(used);
  }
  for (int e = 0; e < kept_groups(); ++e) {
    form_.open_point(used, e);
    if (several) {
      form_.neighbours.take_group(e);
      group(walk, reductions, used, e);
    } else {
      point(walk, reductions, e);
    }
    form_.close_point();
  }
  reductions.finish();
  if (form_.by_group() && !walk.reductions.empty())
    reductions.combine_lanes(form_.options, form_.variant.lanes, true, share_once_, form_.shared);
}

/// A walk, and in it the sums of the one after it.
void RowWriter::walk_online(const RowWalk& walk, GlslOnline online) {
  GlslEvaluator& evaluator = form_.evaluator;
  const bool several = form_.variant.width > 1;
  std::vector<std::uint16_t> roots;
  for (std::uint16_t r : walk.reductions) roots.push_back(kernel_.code[r].a);
  for (const OnlineSum& s : online.sums()) {
    roots.push_back(s.x);
    if (s.picks) roots.insert(roots.end(), {s.condition, s.other});
  }
  std::vector<bool> wanted(kernel_.code.size());
  for (std::uint16_t v : roots) wanted[v] = true;
  for (std::size_t v = wanted.size(); v-- > 0;) {
    wanted[v] = wanted[v] && !phases_.per_row[v] && !evaluator.same_everywhere(v);
    if (!wanted[v]) continue;
    for (std::uint16_t operand : value_operands(kernel_, kernel_.code[v])) wanted[operand] = true;
  }
  const std::vector<bool> used = evaluator.operands_of(wanted);

  GlslReductions reductions = reductions_of(walk);
  reductions.declare();
  online.declare();
  form_.open_row(used);
  if (several) {
    form_.neighbours.declare_loads(used);
    form_.neighbours.load(used, {}, {});
    evaluator.evaluate_once(wanted);
  }
  online.begin_group();
  if (several)
    form_.neighbours.open_each(used);
  else
    body_.open("for (int e = 0; e < 1; ++e) {{");
  evaluator.evaluate(wanted);
  for (std::size_t r = 0; r < walk.reductions.size(); ++r) {
    const Instruction& i = kernel_.code[walk.reductions[r]];
    reductions.add(r, glsl_convert(evaluator.value(i.a), i.type, body_.needs.calls));
  }
  online.note_point();
  body_.close();
  reductions.end_point(form_.variant.width);
  online.end_group();
  form_.close_row();
  reductions.finish();
  reductions.combine_lanes(form_.options, form_.variant.lanes, true, share_once_, form_.shared);
  online.finish();
  std::vector<GlslReduction> sums;
  for (const OnlineSum& s : online.sums())
    sums.push_back(
        {.combine = Combine::sum, .type = DType::f32, .name = fmt::format("v{}", s.sum), .few = true});
  GlslReductions(std::move(sums), body_)
      .combine_lanes(form_.options, form_.variant.lanes, true, false, form_.shared);
  online.settle();
}

/// Whether lanes may still read in the last walk what another one overwrites with a value of the row. A
/// reduction at its end makes them wait for each other.
bool RowWriter::reads_last() const {
  const RowWalk& last = plan_.walks.back();
  if (!last.reductions.empty()) return false;
  for (std::size_t v = 0; v < kernel_.code.size(); ++v) {
    if (last.computed[v] && kernel_.code[v].op == ScalarOp::load) return true;
  }
  return false;
}

void RowWriter::store_row_values() {
  bool any = false;
  for (const Kernel::Output& o : kernel_.outputs) any |= phases_.per_row[o.value];
  if (!any) return;
  if (form_.by_group()) {
    if (reads_last()) {
      const bool subgroup = single_subgroup(form_.options, form_.variant.lanes);
      body_.needs.subgroups |= subgroup;
      // Operands may be where the row's values go; barrier() alone orders shared memory only.
      if (!subgroup) body_.line("memoryBarrierBuffer();");
      body_.line("{}();", subgroup ? "subgroupBarrier" : "barrier");
    }
    body_.open("if (gl_LocalInvocationID.x == 0u) {{");
  }
  for (int o = 0; o < static_cast<int>(kernel_.outputs.size()); ++o) {
    const std::uint16_t v = kernel_.outputs[static_cast<std::size_t>(o)].value;
    if (phases_.per_row[v])
      form_.evaluator.store(o, form_.evaluator.value(v), fmt::format("k{}", form_.operands.output(o)));
  }
  if (form_.by_group()) body_.close();
}

void RowWriter::write() {
  // With a second walk that shares, its barrier keeps the parts of this one until all have read them.
  share_once_ = std::ranges::count_if(plan_.walks, [&](const RowWalk& walk) {
                  return reductions_of(walk).share(form_.options, form_.variant.lanes);
                }) == 1;
  form_.open_points();
  append_coordinates(form_.operands, GlslPart::kept, "n", all_operands(form_.operands), body_);
  append_offsets(form_.operands, GlslPart::kept, "n", all_operands(form_.operands), body_);
  for (std::size_t v = 0; v < kernel_.code.size(); ++v) {
    if (!plan_.kept[v] || form_.evaluator.same_everywhere(v)) continue;
    for (int e = 0; e < kept_groups(); ++e)
      body_.line("{} h{}_{}{};", glsl_type(kernel_.code[v].type), v, e,
                 form_.variant.width > 1 ? fmt::format("[{}]", int{form_.variant.width}) : "");
  }
  row_values(0);
  for (int pass = 0; pass < phases_.passes; ++pass) {
    const RowWalk& next = plan_.walks[static_cast<std::size_t>(pass)];
    std::vector<OnlineSum> sums;
    if (form_.variant.online) sums = online_sums(kernel_, phases_, plan_, pass);
    if (sums.empty()) {
      walk(next);
    } else {
      walk_online(next, {std::move(sums), form_.variant.width, body_});
      row_values(++pass);
    }
    row_values(pass + 1);
  }
  store_row_values();
  body_.close();
}

}  // namespace

void write_rows(GlslForm& form) { RowWriter(form).write(); }

}  // namespace caldera
