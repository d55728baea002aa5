#include "tests/catalogue/table/operation.h"

#include "tests/catalogue/table/families.h"

namespace caldera::catalogue {

DType result_type(ResultType rule, DType type, const Arguments& arguments) {
  switch (rule) {
    case ResultType::same:
      return type;
    case ResultType::boolean:
      return DType::boolean;
    case ResultType::index:
      return DType::i32;
    case ResultType::floating:
      return is_floating(type) ? type : DType::f32;
    case ResultType::computed:
      return is_half(type) ? DType::f32 : type;
    case ResultType::summed:
      return arguments.dtype("dtype", sum_type(type));
    case ResultType::argument:
      return arguments.dtype("dtype", type);
  }
  return type;
}

std::span<const Operation* const> operations() {
  static const std::vector<const Operation*> kAll = [] {
    std::vector<const Operation*> all;
    for (const auto family : {creation_operations,
                              range_operations,
                              elementwise_unary_operations,
                              elementwise_binary_operations,
                              activation_operations,
                              reduction_operations,
                              statistics_operations,
                              cumulative_operations,
                              matmul_operations,
                              product_operations,
                              convolution_operations,
                              pooling_operations,
                              movement_operations,
                              joining_operations,
                              at_operations,
                              indexing_operations,
                              take_put_operations,
                              normalization_operations,
                              loss_operations,
                              function_operations,
                              bitwise_operations,
                              sorting_operations,
                              random_operations,
                              manipulation_operations,
                              repetition_operations,
                              padding_operations,
                              interpolation_operations,
                              image_operations,
                              scatter_operations,
                              group_operations,
                              channel_normalization_operations,
                              network_operations,
                              layer_operations,
                              linalg_operations,
                              regression_operations,
                              likelihood_operations,
                              margin_operations,
                              label_loss_operations,
                              complex_operations,
                              fourier_operations,
                              short_time_operations,
                              nan_reduction_operations,
                              indexed_extremum_operations,
                              order_statistic_operations,
                              analysis_operations,
                              composition_operations,
                              special_operations,
                              matrix_function_operations}) {
      for (const Operation& operation : family()) all.push_back(&operation);
    }
    return all;
  }();
  return kAll;
}

const Operation* find_operation(std::string_view name) {
  for (const Operation* operation : operations()) {
    if (operation->name == name) return operation;
  }
  return nullptr;
}

}  // namespace caldera::catalogue
