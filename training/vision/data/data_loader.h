// DataLoader: batches of images, made ahead of the step that takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/graph/lazy_tensor.h"
#include "training/vision/data/image_dataset.h"
#include "training/vision/data/samplers.h"
#include "training/vision/data/transforms.h"

namespace caldera::vision {

/// Holds a batch on its device. With mixup each image is `share` of itself and the rest of another one, whose
/// label is in `other_labels`; its loss is that mean of both labels' losses.
struct ImageBatch {
  LazyTensor images;        ///< (batch, channels, height, width), f32
  LazyTensor labels;        ///< (batch), i32
  LazyTensor other_labels;  ///< undefined without mixup
  double share = 1;
};

struct DataLoaderOptions {
  std::int64_t batch_size = 32;
  bool shuffle = false;    ///< each epoch in another order; of no effect with a sampler
  bool drop_last = false;  ///< leave out a last batch that is smaller
  int workers = 1;         ///< threads that make batches; 0: the caller's makes each when it is asked for
  int prefetch = 2;        ///< batches that each worker is ahead
  std::uint64_t seed = 0;
  Sampler sampler{};      ///< in place of the order
  Transform transform{};  ///< of each image
  double mixup = 0;       ///< alpha of the Beta distribution of the shares (Zhang et al. 2018); 0: off
  std::optional<Device> device{};  ///< else default_device()
};

/// Makes batches of a dataset. What they hold follows from the seed, the epoch and the images' numbers, not
/// from the number of workers. One thread at a time uses a loader.
class DataLoader {
 public:
  /// Throws ValueError for sizes below 1, and without any batch.
  DataLoader(ImageDatasetPtr data, DataLoaderOptions options = {});
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;

  /// Counts the batches of an epoch.
  std::int64_t batches() const;
  /// Begins an epoch: workers make its batches, from number `first` on.
  void begin(std::int64_t epoch, std::int64_t first = 0);
  /// Returns the next batch; nothing at the end of the epoch. Throws what an image or a transform threw, and
  /// ShapeError where the images of a batch differ in size.
  std::optional<ImageBatch> next();
  /// Counts the seconds that next() has waited for batches, or made them where there are no workers, since
  /// begin().
  double waited_seconds() const;
  const ImageDataset& data() const;
  const DataLoaderOptions& options() const;

 private:
  class Epoch;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace caldera::vision
