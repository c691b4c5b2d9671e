#include "posattn/results/results_database.h"

#include <fmt/format.h>

#include <limits>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/results/sqlite.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t format_version = 1;
constexpr int64_t application = 0x706f7361;  // "posa" marks the file as ours

// `revision` is RunResult::commit, which is a word of SQL.
constexpr const char* schema = R"(
CREATE TABLE runs (
  key TEXT NOT NULL PRIMARY KEY,
  configuration TEXT NOT NULL,
  status TEXT NOT NULL,
  message TEXT NOT NULL,
  epochs INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  seconds REAL,
  device TEXT NOT NULL,
  version TEXT NOT NULL,
  revision TEXT NOT NULL,
  ended TEXT NOT NULL,
  train_loss REAL,
  validation_loss REAL
) STRICT, WITHOUT ROWID;
CREATE TABLE tests (
  key TEXT NOT NULL REFERENCES runs (key),
  c REAL NOT NULL,
  mse REAL,
  mse_over_c2 REAL,
  accuracy REAL,
  PRIMARY KEY (key, c)
) STRICT, WITHOUT ROWID;
)";

constexpr const char* run_columns =
    "key, configuration, status, message, epochs, steps, seconds, device, version, revision, "
    "ended, train_loss, validation_loss";

void make_tables(const SqliteConnection& connection) {
  SqliteTransaction transaction(connection, true);
  connection.execute(schema);
  connection.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                 application, format_version));
  transaction.commit();
}

// Also what a process leaves that is killed before the tables are there.
bool is_empty(const SqliteConnection& connection) {
  return connection.ask("PRAGMA user_version") == 0 &&
         connection.ask("SELECT count(*) FROM sqlite_master") == 0;
}

void check_format(const SqliteConnection& connection) {
  if (connection.ask("PRAGMA application_id") != application) {
    refuse_database(connection.file(), "it is a database of something else");
  }
  const int64_t version = connection.ask("PRAGMA user_version");
  if (version > format_version) {
    throw Error(ExitCode::data,
                fmt::format("'{}' was made by a newer posattn (format {})",
                            connection.file().string(), version),
                fmt::format("format {}", format_version), "use that version, or another --results");
  }
  if (version < format_version) refuse_database(connection.file(), "its format is unknown");
}

// Journal and database are synchronised at every commit, and then the folder (EXTRA), so that what
// is committed survives a power cut. A rollback journal rather than a write-ahead log: one file and
// no shared memory, so that any file system will do and a write-protected folder can be read.
void prepare(const SqliteConnection& connection, ResultsDatabase::Access access) {
  connection.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
  if (access == ResultsDatabase::Access::read) {
    connection.execute("PRAGMA query_only = ON");
  } else {
    connection.execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA");
  }
  if (!is_empty(connection)) {
    check_format(connection);
  } else if (access == ResultsDatabase::Access::write) {
    make_tables(connection);
  } else {
    throw Error(ExitCode::data, fmt::format("'{}' is empty", connection.file().string()),
                "results of posattn reproduce", "run posattn reproduce with this --results first");
  }
}

fs::path database_file(const fs::path& folder, ResultsDatabase::Access access) {
  fs::path file = folder / "results.db";
  if (access == ResultsDatabase::Access::write) {
    create_folder(folder);
  } else if (std::error_code ignored; !fs::exists(file, ignored)) {
    throw Error(ExitCode::data, fmt::format("there is no '{}'", file.string()),
                "a folder with results of posattn reproduce",
                "check --results, or run posattn reproduce first");
  }
  if (std::error_code ignored; fs::is_directory(file, ignored)) {
    refuse_database(file, "it is a folder");
  }
  return file;
}

// A connection to a file that is known to be ours, or to a database in memory.
struct ResultsConnection : SqliteConnection {
  ResultsConnection() : SqliteConnection(":memory:", true) { make_tables(*this); }
  ResultsConnection(const fs::path& folder, ResultsDatabase::Access access)
      : SqliteConnection(database_file(folder, access), access == ResultsDatabase::Access::write) {
    prepare(*this, access);
  }
};

}  // namespace

struct ResultsDatabase::Implementation {
  Implementation() = default;
  Implementation(const fs::path& folder, Access access) : connection(folder, access) {}

  RunResult result(SqliteStatement& row) {
    RunResult result;
    result.key = row.text();
    result.configuration = row.text();
    result.status = run_status_from(row.text());
    result.message = row.text();
    result.epochs = row.integer();
    result.steps = row.integer();
    result.seconds = row.number();
    result.device = row.text();
    result.version = row.text();
    result.commit = row.text();
    result.ended = row.text();
    result.train_loss = row.number();
    result.validation_loss = row.optional_number();
    tests.start().bind(result.key);
    while (tests.step()) {
      ScaleResult test;
      test.c = tests.number();
      test.mse = tests.number();
      test.mse_over_c2 = tests.number();
      test.accuracy = tests.number();
      result.tests.push_back(std::move(test));
    }
    return result;
  }

  ResultsConnection connection;
  SqliteStatement one{connection, fmt::format("SELECT {} FROM runs WHERE key = ?", run_columns)};
  SqliteStatement every{connection, fmt::format("SELECT {} FROM runs ORDER BY key", run_columns)};
  SqliteStatement tests{connection,
                        "SELECT c, mse, mse_over_c2, accuracy FROM tests WHERE key = ? ORDER BY c"};
  SqliteStatement drop_tests{connection, "DELETE FROM tests WHERE key = ?"};
  SqliteStatement put_run{connection, fmt::format("INSERT OR REPLACE INTO runs ({}) VALUES "
                                                  "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                                  run_columns)};
  SqliteStatement put_test{connection,
                           "INSERT INTO tests (key, c, mse, mse_over_c2, accuracy) "
                           "VALUES (?, ?, ?, ?, ?)"};
};

ResultsDatabase::ResultsDatabase() : implementation_(std::make_unique<Implementation>()) {}
ResultsDatabase::ResultsDatabase(const fs::path& folder, Access access)
    : implementation_(std::make_unique<Implementation>(folder, access)) {}
ResultsDatabase::~ResultsDatabase() = default;
ResultsDatabase::ResultsDatabase(ResultsDatabase&&) noexcept = default;
ResultsDatabase& ResultsDatabase::operator=(ResultsDatabase&&) noexcept = default;

void ResultsDatabase::record(const RunResult& result) {
  Implementation& of = *implementation_;
  SqliteTransaction transaction(of.connection, true);
  of.drop_tests.start().bind(result.key).finish();
  of.put_run.start()
      .bind(result.key)
      .bind(result.configuration)
      .bind(std::string(to_string(result.status)))
      .bind(result.message)
      .bind(result.epochs)
      .bind(result.steps)
      .bind(result.seconds)
      .bind(result.device)
      .bind(result.version)
      .bind(result.commit)
      .bind(result.ended)
      .bind(result.train_loss)
      .bind(result.validation_loss.value_or(std::numeric_limits<double>::quiet_NaN()))
      .finish();
  for (const ScaleResult& test : result.tests) {
    of.put_test.start()
        .bind(result.key)
        .bind(test.c)
        .bind(test.mse)
        .bind(test.mse_over_c2)
        .bind(test.accuracy)
        .finish();
  }
  transaction.commit();
}

std::optional<RunResult> ResultsDatabase::find(const std::string& key) const {
  Implementation& of = *implementation_;
  const SqliteTransaction one_state(of.connection, false);
  of.one.start().bind(key);
  std::optional<RunResult> found;
  while (of.one.step()) found = of.result(of.one);
  return found;
}

std::vector<RunResult> ResultsDatabase::all() const {
  Implementation& of = *implementation_;
  const SqliteTransaction one_state(of.connection, false);
  of.every.start();
  std::vector<RunResult> results;
  while (of.every.step()) results.push_back(of.result(of.every));
  return results;
}

std::unordered_map<std::string, RunStatus> ResultsDatabase::statuses() const {
  SqliteStatement every(implementation_->connection, "SELECT key, status FROM runs");
  std::unordered_map<std::string, RunStatus> statuses;
  while (every.step()) {
    std::string key = every.text();
    statuses.emplace(std::move(key), run_status_from(every.text()));
  }
  return statuses;
}

}  // namespace posattn
