// StreamedDataset: training data that are read while they are trained on, so that files of any size take
// little memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lm/tokenizers/tokenizer.h"
#include "training/data/dataset.h"
#include "training/data/example_files.h"
#include "training/data/stream/stream_losses.h"
#include "training/data/training_set.h"

namespace caldera {

namespace detail {
struct Stream;
}

/// Reads files once to find their rows (some seconds for each GB), and then each row when it is its turn.
///
/// Every epoch is a fresh random order of all rows of all files, by seed and epoch alone. Some hundred rows
/// that follow each other in it (at most 4 MiB of text) are read, tokenised as a TokenDataset does, and given
/// in a random order, or packed. What is lost of rows is known when they were read: rows that cannot be read
/// throw FileError from BatchSource::next() unless DataFileOptions::skip_bad_rows.
///
/// .jsonl, .csv and .tsv are read by rows. A .txt is read in blocks of whole lines of at least 16 KiB, each
/// of which is a document of its own: windows do not reach from one block into the next.
class StreamedDataset final : public TrainingSet {
 public:
  /// `files` are as in load_splits(); of a folder the training part. The last rows of each file, `held_out`
  /// of them but at most a twentieth, are never trained on. Throws FileError as load_examples() does, as far
  /// as the first rows go, and for files whose rows cannot be found without reading all of them (.json, and
  /// standard input); ValueError as TokenDataset does.
  /// The tokenizer and the chat format must outlive this.
  StreamedDataset(std::span<const DataPath> files, const Tokenizer& tokenizer,
                  const DataFileOptions& file_options, const DatasetOptions& options,
                  std::int64_t held_out = 0);
  ~StreamedDataset() override;
  StreamedDataset(StreamedDataset&&) noexcept;

  std::unique_ptr<BatchSource> batches(std::int64_t batch_size, std::uint64_t seed,
                                       Packing packing) const override;
  /// Rows of seq_len tokens, whether there is a sequence of so many or not.
  Batch longest_batch(std::int64_t batch_size, Packing packing) const override;
  /// The first rows of each file, together about 2,000.
  const TokenDataset& sample() const override;
  std::string fingerprint() const override;

  /// Number of rows (of a .txt: blocks) that are trained on.
  std::int64_t rows() const;
  std::int64_t bytes() const;  ///< of all files
  /// Whether any of the first rows has a prompt, or parts that alone are learned.
  bool has_prompts() const;
  /// The rows that are never trained on, a set a file; those without text left out.
  std::vector<ExampleSet> held_out() const;
  const StreamLosses& losses() const;

 private:
  std::unique_ptr<detail::Stream> stream_;
};

}  // namespace caldera
