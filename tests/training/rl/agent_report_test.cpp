// A run's table as a page: what is read, what is left out, and that nothing of a title ends the page's data.
#include "training/rl/policy/agent_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "training/report/report_page.h"

namespace caldera::rl {
namespace {

AgentReport report_of(const std::string& table) {
  const testing::TempFolder folder;
  std::ofstream(folder.path() / "progress.csv") << table;
  return read_agent_log(folder.path());
}

nlohmann::json data_of(const std::string& page) {
  const std::size_t begin = page.find(report_page::kDataBegin) + report_page::kDataBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find(report_page::kDataEnd, begin) - begin));
}

TEST(AgentReports, ReadTheTableOfARun) {
  const AgentReport report = report_of(
      "steps,episodes,mean_return,policy_loss\n"
      "100,2,,0.5\n"
      "200,5,21.5,-1e-3\n"
      "cut,7\n"
      "300,x,1,1\n"
      "400,9,23,0.25\n");
  EXPECT_EQ(report.names, (std::vector<std::string>{"steps", "episodes", "mean_return", "policy_loss"}));
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_TRUE(std::isnan(report.rows[0][2]));
  EXPECT_EQ(report.rows[1], (std::vector<double>{200, 5, 21.5, -1e-3}));
  EXPECT_EQ(report.rows[2].front(), 400);
  EXPECT_TRUE(read_agent_log("/nowhere").rows.empty());
  EXPECT_TRUE(report_of("").names.empty());
}

TEST(AgentReports, AreAPageWithTheirData) {
  AgentReport report = report_of("steps,episodes,mean_return\n100,2,\n200,5,21.5\n");
  report.title = "</script><b>title";
  report.evaluation = {.returns = {20, 22}, .lengths = {20, 22}, .mean_return = 21, .std_return = 1};
  const nlohmann::json data = data_of(to_html(report));
  EXPECT_EQ(data["title"], report.title);
  EXPECT_EQ(data["steps"], (nlohmann::json{100, 200}));
  EXPECT_EQ(data["columns"]["mean_return"], (nlohmann::json{nullptr, 21.5}));
  EXPECT_EQ(data["evaluation"]["returns"], (nlohmann::json{20, 22}));
  EXPECT_EQ(data_of(to_html({.title = "empty"}))["evaluation"], nullptr);
}

TEST(AgentReports, ShowTheLastOfSoManyRows) {
  AgentReport report{.title = "long", .names = {"steps", "episodes"}};
  for (int i = 1; i <= 4500; ++i) report.rows.push_back({10.0 * i, 1.0 * i});
  const nlohmann::json data = data_of(to_html(report));
  ASSERT_EQ(data["steps"].size(), 1500U);
  EXPECT_EQ(data["steps"][0], 30);
  EXPECT_EQ(data["steps"].back(), 45000);
  EXPECT_EQ(data["columns"]["episodes"].back(), 4500);
}

}  // namespace
}  // namespace caldera::rl
