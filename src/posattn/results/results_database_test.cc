#include "posattn/results/results_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/results/sqlite.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using Access = ResultsDatabase::Access;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

RunResult sample(const std::string& key) {
  RunResult result;
  result.key = key;
  result.configuration = R"({"task":"sort","seed":3})";
  result.epochs = 200;
  result.steps = 6000;
  result.seconds = 12.5;
  result.device = "cpu";
  result.version = "0.1.0";
  result.commit = "abc";
  result.ended = "2025-01-31T12:00:00Z";
  result.measurements = {
      {Split::train, "", 0, "mse", 0.1},     {Split::validation, "", 0, "mse", 1.0 / 3},
      {Split::test, "c", 1, "mse", 0.1},     {Split::test, "c", 1, "accuracy", 0.75},
      {Split::test, "c", 2.5, "mse", 1e300}, {Split::test, "c", 2.5, "accuracy", 0}};
  return result;
}

void set_mse(RunResult& result, double c, double value) {
  set_value(result.measurements, {.axis = "c", .x = c, .metric = "mse"}, value);
}

void expect_number(double actual, double expected) {
  EXPECT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)))
      << actual << " " << expected;
}

void expect_same(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.configuration, b.configuration);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.message, b.message);
  EXPECT_EQ(a.epochs, b.epochs);
  EXPECT_EQ(a.steps, b.steps);
  expect_number(a.seconds, b.seconds);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.commit, b.commit);
  EXPECT_EQ(a.ended, b.ended);
  EXPECT_EQ(a.measurements.size(), b.measurements.size());
  for (const Measurement& row : a.measurements) {
    const auto other = find_value(b.measurements, {row.split, row.axis, row.x, row.metric});
    ASSERT_TRUE(other.has_value()) << row.axis << " " << row.x << " " << row.metric;
    expect_number(row.value, *other);
  }
}

class ResultsDatabaseTest : public testing::Test {
 protected:
  ResultsDatabase open(Access access = Access::write) const { return {folder_.path(), access}; }
  fs::path file() const { return folder_.path() / "results.db"; }
  void expect_refused(Access access, const std::string& message) const {
    try {
      ResultsDatabase database = open(access);
      (void)database.all();  // damage inside a page shows when it is read
      ADD_FAILURE() << "not refused: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
      EXPECT_THAT(error.what(), testing::HasSubstr("results.db"));
    }
  }
  TemporaryFolder folder_;
};

TEST_F(ResultsDatabaseTest, ReturnsWhatWasRecorded) {
  RunResult diverged = sample("b");
  diverged.status = RunStatus::diverged;
  diverged.message = "loss 'inf' in epoch 3; \xc2\xb5 \n\"quoted\"";
  diverged.measurements.erase(diverged.measurements.begin() + 1);  // no validation loss
  diverged.measurements[0].value = nan;
  set_mse(diverged, 1, nan);
  set_mse(diverged, 2.5, std::numeric_limits<double>::infinity());
  {
    ResultsDatabase database = open();
    database.record(diverged);
    database.record(sample("a"));
    expect_same(database.find("b").value(), diverged);
  }
  const ResultsDatabase database = open(Access::read);
  const std::vector<RunResult> all = database.all();
  ASSERT_EQ(all.size(), 2u);
  expect_same(all[0], sample("a"));
  expect_same(all[1], diverged);
  EXPECT_FALSE(database.find("c").has_value());
}

TEST_F(ResultsDatabaseTest, KeepsEveryBitOfANumber) {
  std::mt19937_64 random(7);
  ResultsDatabase database = open();
  for (int i = 0; i < 20; ++i) {
    RunResult result = sample("run");
    result.measurements[0].value =
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 1800) - 1000);
    set_mse(result, 1, std::ldexp(static_cast<double>(random()), -1070));  // also subnormal ones
    database.record(result);
    expect_same(database.find("run").value(), result);
  }
}

TEST_F(ResultsDatabaseTest, ReplacesTheResultOfAKey) {
  ResultsDatabase database = open();
  RunResult failed = sample("a");
  failed.status = RunStatus::failed;
  failed.message = "disk full";
  set_mse(failed, 100, 1);
  database.record(failed);
  database.record(sample("b"));
  database.record(sample("a"));
  expect_same(database.find("a").value(), sample("a"));
  EXPECT_EQ(database.all().size(), 2u);
}

TEST_F(ResultsDatabaseTest, TestsComeBackByScale) {
  RunResult result = sample("a");
  std::swap(result.measurements[2], result.measurements[4]);
  ResultsDatabase database = open();
  database.record(result);
  EXPECT_THAT(tested_values(database.find("a")->measurements, "c"), testing::ElementsAre(1, 2.5));
}

TEST_F(ResultsDatabaseTest, KeepsRowsOfAnyAxisAndMetric) {
  RunResult result = sample("a");
  result.measurements.push_back({Split::test, "length", 16, "mse", 3});
  result.measurements.push_back({Split::test, "c", 1, "largest_error", 5});
  result.measurements.push_back({Split::validation, "", 0, "cross_entropy", 2});
  ResultsDatabase database = open();
  database.record(result);
  expect_same(database.find("a").value(), result);
}

// Users who read the file with SQL expect the table of format 1.
TEST_F(ResultsDatabaseTest, AViewShowsTestsInValueRanges) {
  RunResult result = sample("a");
  result.measurements.push_back({Split::test, "length", 16, "mse", 3});
  open().record(result);
  const SqliteConnection connection(file(), false);
  SqliteStatement statement(connection,
                            "SELECT c, mse, mse_over_c2, accuracy FROM tests ORDER BY c");
  std::vector<double> values;
  while (statement.step()) {
    for (int column = 0; column < 4; ++column) values.push_back(statement.number());
  }
  EXPECT_THAT(values, testing::ElementsAre(1, 0.1, 0.1, 0.75, 2.5, 1e300, 1e300 / 6.25, 0));
}

// A result is there whole or not at all.
TEST_F(ResultsDatabaseTest, AFailedRecordChangesNothing) {
  ResultsDatabase database = open();
  database.record(sample("a"));
  RunResult bad = sample("a");
  bad.message = "new";
  bad.measurements.push_back(bad.measurements.back());  // the same place twice
  EXPECT_THROW(database.record(bad), Error);
  expect_same(database.find("a").value(), sample("a"));
  database.record(sample("b"));
  EXPECT_EQ(database.all().size(), 2u);
}

TEST_F(ResultsDatabaseTest, ReadersSeeEveryCommitAtOnce) {
  ResultsDatabase writer = open();
  const ResultsDatabase reader = open(Access::read);
  for (int i = 0; i < 5; ++i) {
    writer.record(sample(std::string(1, static_cast<char>('a' + i))));
    EXPECT_EQ(reader.all().size(), static_cast<std::size_t>(i + 1));
    EXPECT_TRUE(reader.find("a").has_value());
  }
  EXPECT_FALSE(fs::exists(file().string() + "-journal"));
}

TEST_F(ResultsDatabaseTest, ReadingNeitherMakesNorChangesAFile) {
  expect_refused(Access::read, "there is no");
  EXPECT_FALSE(fs::exists(file()));
  open().record(sample("a"));
  ResultsDatabase reader = open(Access::read);
  EXPECT_THROW(reader.record(sample("b")), Error);
  EXPECT_EQ(reader.all().size(), 1u);
}

// What a process leaves that is killed while it makes the database.
TEST_F(ResultsDatabaseTest, AnEmptyFileBecomesADatabase) {
  write_file(file(), "");
  expect_refused(Access::read, "is empty");
  open().record(sample("a"));
  EXPECT_EQ(open(Access::read).all().size(), 1u);
}

// What a process leaves that is killed during a commit: a journal that undoes it, also for readers.
TEST_F(ResultsDatabaseTest, AHalfWrittenCommitIsUndone) {
  TemporaryFolder copy;
  {
    ResultsDatabase database = open();
    database.record(sample("a"));
    const SqliteConnection other(file(), false);
    other.execute("PRAGMA cache_size = 1; PRAGMA cache_spill = 1");
    const SqliteTransaction transaction(other, true);
    other.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
        "INSERT INTO measurements SELECT 'a', 'test', 'c', 100 + i, 'mse', 0 FROM n");
    for (const char* end : {"", "-journal"}) {  // the pages written so far, and the journal
      fs::copy_file(file().string() + end, (copy.path() / "results.db").string() + end);
    }
  }
  ASSERT_GT(fs::file_size(copy.path() / "results.db"), 20000u);
  const ResultsDatabase database(copy.path(), Access::read);
  expect_same(database.find("a").value(), sample("a"));
}

TEST_F(ResultsDatabaseTest, RefusesWhatIsNoDatabase) {
  write_file(file(), std::string(5000, 'x'));
  expect_refused(Access::read, "not a database");
  expect_refused(Access::write, "not a database");
}

TEST_F(ResultsDatabaseTest, RefusesAnotherProgramsDatabase) {
  SqliteConnection(file(), true).execute("CREATE TABLE runs (a)");
  expect_refused(Access::read, "something else");
  expect_refused(Access::write, "something else");
}

TEST_F(ResultsDatabaseTest, RefusesOtherTables) {
  open();
  SqliteConnection(file(), false)
      .execute("DROP TABLE measurements; CREATE TABLE measurements (key)");
  expect_refused(Access::read, "no such column");
}

TEST_F(ResultsDatabaseTest, RefusesAnUnknownStatus) {
  open().record(sample("a"));
  SqliteConnection(file(), false).execute("UPDATE runs SET status = 'fine'");
  EXPECT_THROW((void)open(Access::read).all(), Error);
}

TEST_F(ResultsDatabaseTest, RefusesAValueThatWasChanged) {
  const std::string changes[] = {
      "UPDATE measurements SET value = value + 1e-9 WHERE metric = 'accuracy' AND x = 1",
      "UPDATE measurements SET value = NULL WHERE metric = 'accuracy' AND x = 1",
      "DELETE FROM measurements WHERE x = 2.5 AND metric = 'mse'",
      "UPDATE runs SET seconds = 13",
      "UPDATE runs SET status = 'diverged'",
      "UPDATE runs SET configuration = '{}'",
      "UPDATE runs SET key = 'b' WHERE key = 'd'",
      "UPDATE runs SET checksum = '0123456789abcdef'"};
  for (const std::string& change : changes) {
    fs::remove(file());
    RunResult diverged = sample("d");
    diverged.measurements.clear();
    open().record({sample("a"), diverged});
    EXPECT_NO_THROW((void)open(Access::read));
    SqliteConnection(file(), false).execute(change);
    expect_refused(Access::read, " was changed after it was recorded");
    expect_refused(Access::write, " was changed after it was recorded");
  }
}

TEST_F(ResultsDatabaseTest, OnlyTheFirstVersionRecordedWithoutAChecksum) {
  open().record(sample("a"));  // of 0.1.0
  const std::string without = "UPDATE runs SET checksum = ''";
  SqliteConnection(file(), false).execute(without);
  EXPECT_NO_THROW((void)open(Access::read).all());
  RunResult result = sample("a");
  result.version = "0.2.0";
  open().record(result);
  SqliteConnection(file(), false).execute(without);
  expect_refused(Access::read, "run a was changed after it was recorded");
}

TEST_F(ResultsDatabaseTest, RefusesANewerFormat) {
  open();
  SqliteConnection(file(), false).execute("PRAGMA user_version = 3");
  expect_refused(Access::read, "newer posattn (format 3)");
  expect_refused(Access::write, "newer posattn (format 3)");
}

class OlderDatabaseTest : public ResultsDatabaseTest {
 protected:
  // A database as posattn 0.1.0 wrote it, with the runs "a" and "b".
  void SetUp() override {
    const SqliteConnection connection(file(), true);
    connection.execute(R"(
PRAGMA application_id = 0x706f7361; PRAGMA user_version = 1;
CREATE TABLE runs (
  key TEXT NOT NULL PRIMARY KEY, configuration TEXT NOT NULL, status TEXT NOT NULL,
  message TEXT NOT NULL, epochs INTEGER NOT NULL, steps INTEGER NOT NULL, seconds REAL,
  device TEXT NOT NULL, version TEXT NOT NULL, revision TEXT NOT NULL, ended TEXT NOT NULL,
  train_loss REAL, validation_loss REAL
) STRICT, WITHOUT ROWID;
CREATE TABLE tests (
  key TEXT NOT NULL REFERENCES runs (key), c REAL NOT NULL, mse REAL, mse_over_c2 REAL,
  accuracy REAL, PRIMARY KEY (key, c)
) STRICT, WITHOUT ROWID;
INSERT INTO runs VALUES
  ('a', '{"task":"sort","seed":3}', 'done', '', 200, 6000, 12.5, 'cpu', '0.1.0', 'abc',
   '2025-01-31T12:00:00Z', 0.1, 1.0 / 3),
  ('b', '{}', 'diverged', 'loss', 3, 9, 1, 'cpu', '0.1.0', 'abc', '', NULL, NULL);
INSERT INTO tests VALUES ('a', 1, 0.1, 0.1, 0.75), ('a', 2.5, 1e300, 1.6e299, 0);
)");
  }
  static void expect_read(const ResultsDatabase& database) {
    expect_same(database.find("a").value(), sample("a"));
    const std::optional<RunResult> diverged = database.find("b");
    ASSERT_TRUE(diverged.has_value());
    EXPECT_EQ(diverged->status, RunStatus::diverged);
    EXPECT_TRUE(diverged->measurements.empty());
    EXPECT_EQ(database.all().size(), 2u);
  }
};

TEST_F(OlderDatabaseTest, IsReadAsItIs) {
  const std::string before = read_text_file(file(), 1 << 20);
  expect_read(open(Access::read));
  EXPECT_EQ(read_text_file(file(), 1 << 20), before);
}

TEST_F(OlderDatabaseTest, BecomesOneOfOurFormat) {
  {
    ResultsDatabase database = open();
    expect_read(database);
    database.record(sample("a"));
  }
  EXPECT_EQ(SqliteConnection(file(), false).ask("PRAGMA user_version"), 2);
  EXPECT_EQ(SqliteConnection(file(), false).ask("SELECT count(*) FROM tests"), 2);
  expect_read(open());
  expect_read(open(Access::read));
}

// What a process leaves that is killed on the way: the pages written so far, and a journal.
TEST_F(OlderDatabaseTest, StaysWholeWhenTheChangeIsCutOff) {
  TemporaryFolder copy;
  {
    const SqliteConnection connection(file(), false);
    connection.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
        "INSERT INTO tests SELECT 'b', i, 0, 0, 0 FROM n");
    connection.execute("PRAGMA cache_size = 1; PRAGMA cache_spill = 1");
    const SqliteTransaction transaction(connection, true);
    connection.execute(
        "CREATE TABLE measurements (key, c, mse); INSERT INTO measurements SELECT key, c, mse FROM "
        "tests; DROP TABLE tests; PRAGMA user_version = 2");
    for (const char* end : {"", "-journal"}) {
      fs::copy_file(file().string() + end, (copy.path() / "results.db").string() + end);
    }
  }
  const ResultsDatabase reader(copy.path(), Access::read);
  expect_same(reader.find("a").value(), sample("a"));
  const ResultsDatabase writer(copy.path(), Access::write);
  expect_same(writer.find("a").value(), sample("a"));
  EXPECT_EQ(tested_values(writer.find("b")->measurements, "c").size(), 3000u);
}

TEST_F(OlderDatabaseTest, WithoutItsTablesIsRefused) {
  SqliteConnection(file(), false).execute("DROP TABLE tests");
  expect_refused(Access::read, "no such table");
  expect_refused(Access::write, "no such table");
}

// Damage anywhere: either it is noticed with one clear error, or the results can still be read.
TEST_F(ResultsDatabaseTest, DamageIsNeverACrash) {
  {
    ResultsDatabase database = open();
    for (int i = 0; i < 30; ++i) database.record(sample("run" + std::to_string(i)));
  }
  const std::string whole = read_text_file(file(), 1 << 20);
  std::mt19937_64 random(11);
  int noticed = 0;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole;
    if (i % 4 == 0) {
      damaged.resize(random() % damaged.size());
    } else {
      for (int bytes = 0; bytes < 40; ++bytes) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
    }
    std::ofstream(file(), std::ios::binary) << damaged;  // quicker than write_file
    try {
      (void)open(Access::read).all();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << error.what();
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 50);
}

TEST(ResultsDatabaseInMemory, KeepsResultsAndStatuses) {
  ResultsDatabase database;
  EXPECT_TRUE(database.all().empty());
  RunResult diverged = sample("b");
  diverged.status = RunStatus::diverged;
  database.record(sample("a"));
  database.record(diverged);
  expect_same(database.find("a").value(), sample("a"));
  EXPECT_THAT(database.statuses(),
              testing::UnorderedElementsAre(testing::Pair("a", RunStatus::done),
                                            testing::Pair("b", RunStatus::diverged)));
  EXPECT_TRUE(ResultsDatabase().all().empty());  // each its own
  EXPECT_FALSE(fs::exists(":memory:"));
}

}  // namespace
}  // namespace posattn
