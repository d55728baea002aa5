#include "training/checkpoints/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "tests/support/temp_folder.h"

namespace caldera {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;
using Names = std::set<std::string>;

Names names_in_run(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// "Weights" that say which step they are of, and a configuration.
class TextRun {
 public:
  TextRun(const fs::path& path, RunFolderOptions options, std::string config = "{}")
      : folder(path, std::move(options), [this, config](const fs::path& to, StagedFiles& files) {
          if (full_disk) throw FileError("no space");
          files.add_text(to / "weights", text);
          files.add_text(to / "config", config);
        }) {}

  void save(std::int64_t step, std::optional<BestValidation> best = {}, bool publish = true) {
    text = "weights of " + std::to_string(step);
    TrainState state;
    state.step = step;
    state.best = best;
    state.parameters.emplace("w", LazyTensor::from_vector<float>({1, 2, static_cast<float>(step)}, {3}));
    folder.save(state, publish);
  }

  std::string text;
  bool full_disk = false;
  RunFolder folder;
};

RunFolderOptions text_options(bool replace = false) {
  return {.marker = "config", .keep = 2, .replace = replace, .notes = {{"run.yaml", "a note"}}};
}

TEST(RunFolder, HoldsTheModelAndTheNewestCheckpoints) {
  const TempFolder temp;
  TextRun run(temp / "runs/a", text_options());
  run.folder.open();
  for (const std::int64_t step : {10, 20, 30}) run.save(step);
  EXPECT_EQ(names_in_run(temp / "runs/a"),
            (Names{"checkpoint-20", "checkpoint-30", "config", "weights", "run.yaml", RunLock::kFile}));
  EXPECT_EQ(read_text_file(temp / "runs/a/weights"), "weights of 30");
  EXPECT_EQ(names_in_run(temp / "runs/a/checkpoint-20"), (Names{"config", "weights", kTrainStateFile}));
  EXPECT_EQ(checkpoint_steps(temp / "runs/a"), (std::vector<std::int64_t>{20, 30}));
  EXPECT_EQ(find_train_state(temp / "runs/a"), temp / "runs/a/checkpoint-30/training_state.safetensors");
  EXPECT_EQ(find_train_state(temp / "runs/a/checkpoint-20"),
            temp / "runs/a/checkpoint-20/training_state.safetensors");
  EXPECT_EQ(find_train_state(temp.path()), std::nullopt);
}

TEST(RunFolder, KeepsTheBestCheckpointAndWhatWasPublished) {
  const TempFolder temp;
  TextRun run(temp / "a", text_options());
  run.folder.open();
  run.save(10, BestValidation{10, 1.0});
  for (const std::int64_t step : {20, 30, 40}) run.save(step, BestValidation{10, 1.0}, /*publish=*/false);
  EXPECT_EQ(checkpoint_steps(temp / "a"), (std::vector<std::int64_t>{10, 30, 40}));
  EXPECT_EQ(read_text_file(temp / "a/weights"), "weights of 10");
}

TEST(RunFolder, LocksOutAnotherRun) {
  const TempFolder temp;
  TextRun other(temp / "a", text_options());
  {
    TextRun run(temp / "a", text_options());
    run.folder.open();
    EXPECT_THROW(other.folder.open(), FileError);
    run.save(1);
    EXPECT_THROW(other.folder.open(), FileError);
  }
  EXPECT_FALSE(fs::exists(temp / "a" / RunLock::kFile));
  other.folder.open();
}

TEST(RunFolder, ReplacesAnEarlierRunWithItsFirstSaveAndNotBefore) {
  const TempFolder temp;
  {
    TextRun before(temp / "a", text_options());
    before.folder.open();
    for (const std::int64_t step : {100, 200}) before.save(step);
  }
  temp.put("a/mine.txt", "mine");
  TextRun run(temp / "a", text_options(/*replace=*/true), R"({"other": 1})");
  run.folder.open();
  EXPECT_EQ(read_text_file(temp / "a/weights"), "weights of 200");
  run.full_disk = true;
  EXPECT_THROW(run.save(5), FileError);
  run.full_disk = false;
  TextRun second(temp / "a", text_options());
  run.save(10);
  EXPECT_EQ(names_in_run(temp / "a"),
            (Names{"checkpoint-10", "config", "weights", "run.yaml", "mine.txt", RunLock::kFile}));
  EXPECT_EQ(read_text_file(temp / "a/config"), R"({"other": 1})");
  EXPECT_EQ(read_text_file(temp / "a/weights"), "weights of 10");
  EXPECT_THROW(second.folder.open(), FileError);  // the lock went along
  EXPECT_EQ(names_in_run(temp.path()), Names{"a"});
}

TEST(RunFolder, AnotherConfigurationComesWithItsWeights) {
  const TempFolder temp;
  {
    TextRun before(temp / "a", text_options());
    before.folder.open();
    before.save(10);
  }
  TextRun run(temp / "a", text_options(), R"({"other": 1})");
  run.folder.open();
  run.save(20);
  EXPECT_EQ(read_text_file(temp / "a/config"), R"({"other": 1})");
  EXPECT_EQ(read_text_file(temp / "a/weights"), "weights of 20");
  EXPECT_EQ(checkpoint_steps(temp / "a"), (std::vector<std::int64_t>{10, 20}));
}

TEST(RunFolder, ForgetsTheCheckpointsThatARewoundRunTurnedAwayFrom) {
  const TempFolder temp;
  {
    TextRun before(temp / "a", text_options());
    before.folder.open();
    for (const std::int64_t step : {10, 20}) before.save(step);
  }
  TextRun run(temp / "a", text_options());
  run.folder.open();
  run.save(15);
  EXPECT_EQ(checkpoint_steps(temp / "a"), (std::vector<std::int64_t>{10, 15}));
}

TEST(RunFolder, ACheckpointThatFailsLeavesNothing) {
  const TempFolder temp;
  TextRun run(temp / "a", text_options());
  run.folder.open();
  run.save(10);
  const Names before = names_in_run(temp / "a");
  run.full_disk = true;
  EXPECT_THROW(run.save(20), FileError);
  EXPECT_EQ(names_in_run(temp / "a"), before);
}

TEST(RunFolder, ARunThatSavesNothingLeavesNoFolder) {
  const TempFolder temp;
  fs::create_directories(temp / "there");
  for (const char* name : {"new", "there"}) {
    TextRun run(temp / name, text_options());
    run.folder.open();
    EXPECT_TRUE(fs::exists(fs::path(temp / name) / RunLock::kFile));
  }
  EXPECT_EQ(names_in_run(temp.path()), Names{"there"});
  EXPECT_EQ(names_in_run(temp / "there"), Names{});
}

TEST(RunFolder, SeesOnlyWholeCheckpoints) {
  const TempFolder temp;
  for (const char* name : {"checkpoint-5", "checkpoint-07x", "checkpoint-", "other-3"})
    fs::create_directories(temp / name);
  temp.put("checkpoint-5/training_state.safetensors", "");
  temp.put("checkpoint-07x/training_state.safetensors", "");
  fs::create_directories(temp / "checkpoint-9");  // no state
  EXPECT_EQ(checkpoint_steps(temp.path()), std::vector<std::int64_t>{5});
}

}  // namespace
}  // namespace caldera
