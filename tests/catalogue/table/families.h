// The families of operations: each file of the catalogue gives the entries of one.
#pragma once

#include <span>

#include "tests/catalogue/table/operation.h"

namespace caldera::catalogue {

std::span<const Operation> elementwise_unary_operations();
std::span<const Operation> elementwise_binary_operations();
std::span<const Operation> activation_operations();
std::span<const Operation> reduction_operations();
std::span<const Operation> statistics_operations();
std::span<const Operation> cumulative_operations();
std::span<const Operation> matmul_operations();
std::span<const Operation> product_operations();
std::span<const Operation> convolution_operations();
std::span<const Operation> pooling_operations();
std::span<const Operation> movement_operations();
std::span<const Operation> joining_operations();
std::span<const Operation> at_operations();
std::span<const Operation> indexing_operations();
std::span<const Operation> normalization_operations();
std::span<const Operation> creation_operations();
std::span<const Operation> loss_operations();
std::span<const Operation> function_operations();
std::span<const Operation> bitwise_operations();
std::span<const Operation> sorting_operations();
std::span<const Operation> random_operations();
std::span<const Operation> range_operations();
std::span<const Operation> manipulation_operations();
std::span<const Operation> repetition_operations();
std::span<const Operation> padding_operations();
std::span<const Operation> interpolation_operations();
std::span<const Operation> image_operations();
std::span<const Operation> scatter_operations();
std::span<const Operation> take_put_operations();
std::span<const Operation> group_operations();
std::span<const Operation> channel_normalization_operations();
std::span<const Operation> layer_operations();
std::span<const Operation> network_operations();
std::span<const Operation> linalg_operations();
std::span<const Operation> regression_operations();
std::span<const Operation> likelihood_operations();
std::span<const Operation> margin_operations();
std::span<const Operation> nan_reduction_operations();
std::span<const Operation> indexed_extremum_operations();
std::span<const Operation> order_statistic_operations();
std::span<const Operation> analysis_operations();
std::span<const Operation> composition_operations();
std::span<const Operation> special_operations();
std::span<const Operation> matrix_function_operations();
std::span<const Operation> label_loss_operations();
std::span<const Operation> complex_operations();
std::span<const Operation> fourier_operations();
std::span<const Operation> short_time_operations();

}  // namespace caldera::catalogue
