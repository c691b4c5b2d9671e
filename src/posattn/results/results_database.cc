#include "posattn/results/results_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/hash.h"
#include "posattn/results/sqlite.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr const char* run_columns =
    "key, configuration, status, message, epochs, steps, seconds, device, version, revision, "
    "ended, checksum";

// The file may be anybody's.
void distrust(const SqliteConnection& connection) {
  connection.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
}

// Journal and database are synchronised at every commit, and then the folder (EXTRA), so that what
// is committed survives a power cut. A rollback journal rather than a write-ahead log: one file and
// no shared memory, so that any file system will do and a write-protected folder can be read.
void prepare(const SqliteConnection& connection, ResultsDatabase::Access access) {
  distrust(connection);
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
  if (std::error_code ignored; fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) {
    refuse_database(
        file, fs::is_directory(file, ignored) ? "it is a folder" : "it is a pipe or a device");
  }
  if (std::error_code ignored;
      access == ResultsDatabase::Access::write && fs::is_symlink(file, ignored)) {
    refuse_database(file, "it is a symbolic link, which is not written to");
  }
  return file;
}

using Connection = std::unique_ptr<const SqliteConnection>;

Connection open_in_memory() {
  auto connection = std::make_unique<SqliteConnection>(":memory:", true);
  make_tables(*connection);
  return connection;
}

// Opens a file that is known to be ours, or a copy of it: readers never write to the folder, so
// that one that is write-protected can be read whatever its format.
Connection open_file(const fs::path& folder, ResultsDatabase::Access access) {
  const bool writing = access == ResultsDatabase::Access::write;
  auto connection = std::make_unique<SqliteConnection>(database_file(folder, access), writing);
  prepare(*connection, access);
  if (!has_older_format(*connection)) return connection;
  if (!writing) {
    connection = std::make_unique<SqliteConnection>(*connection, SqliteConnection::Copy::in_memory);
    distrust(*connection);
  }
  bring_to_our_format(*connection);
  return connection;
}

// Exact, and the same for what a database cannot tell apart: every NaN is NULL, -0 may become 0.
std::string exact(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value + 0.0);
}

}  // namespace

struct ResultsDatabase::Implementation {
  explicit Implementation(Connection opened) : connection(std::move(opened)) {}

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
    const std::string checksum = row.text();
    measurements.start(result.key);
    while (measurements.step()) {
      Measurement measured;
      measured.split = split_from(measurements.text());
      measured.axis = measurements.text();
      measured.x = measurements.number();
      measured.metric = measurements.text();
      measured.value = measurements.number();
      result.measurements.push_back(std::move(measured));
    }
    const bool older = checksum.empty() && may_lack_checksum(result.version);
    if (!older && checksum != checksum_of(result)) {
      throw Error(ExitCode::data,
                  fmt::format("'{}': run {} was changed after it was recorded",
                              connection->file().string(), result.key),
                  "the values that were measured",
                  "use a copy of the file from before, or move it away: finished runs are then "
                  "read again from their folders");
    }
    return result;
  }

  void put(const RunResult& result) {
    drop_measurements.start(result.key).finish();
    put_run
        .start(result.key, result.configuration, to_string(result.status), result.message,
               result.epochs, result.steps, result.seconds, result.device, result.version,
               result.commit, result.ended, checksum_of(result))
        .finish();
    for (const Measurement& measured : result.measurements) {
      put_measurement
          .start(result.key, to_string(measured.split), measured.axis, measured.x, measured.metric,
                 measured.value)
          .finish();
    }
  }

  Connection connection;
  SqliteStatement one{*connection, fmt::format("SELECT {} FROM runs WHERE key = ?", run_columns)};
  SqliteStatement every{*connection, fmt::format("SELECT {} FROM runs ORDER BY key", run_columns)};
  SqliteStatement measurements{*connection,
                               "SELECT split, axis, x, metric, value FROM measurements "
                               "WHERE key = ? ORDER BY split, axis, x, metric"};
  SqliteStatement drop_measurements{*connection, "DELETE FROM measurements WHERE key = ?"};
  SqliteStatement put_run{*connection, fmt::format("INSERT OR REPLACE INTO runs ({}) VALUES "
                                                   "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                                   run_columns)};
  SqliteStatement put_measurement{*connection,
                                  "INSERT INTO measurements (key, split, axis, x, metric, value) "
                                  "VALUES (?, ?, ?, ?, ?, ?)"};
};

ResultsDatabase::ResultsDatabase()
    : implementation_(std::make_unique<Implementation>(open_in_memory())) {}
ResultsDatabase::ResultsDatabase(const fs::path& folder, Access access)
    : implementation_(std::make_unique<Implementation>(open_file(folder, access))) {
  (void)all();  // a run whose key was damaged would pass for one that is missing
}
ResultsDatabase::~ResultsDatabase() = default;
ResultsDatabase::ResultsDatabase(ResultsDatabase&&) noexcept = default;
ResultsDatabase& ResultsDatabase::operator=(ResultsDatabase&&) noexcept = default;

void ResultsDatabase::record(const RunResult& result) { record(std::vector{result}); }

void ResultsDatabase::record(const std::vector<RunResult>& results) {
  SqliteTransaction transaction(*implementation_->connection, true);
  for (const RunResult& result : results) implementation_->put(result);
  transaction.commit();
}

std::optional<RunResult> ResultsDatabase::find(const std::string& key) const {
  Implementation& of = *implementation_;
  const SqliteTransaction one_state(*of.connection, false);
  of.one.start(key);
  std::optional<RunResult> found;
  while (of.one.step()) found = of.result(of.one);
  return found;
}

std::vector<RunResult> ResultsDatabase::all() const {
  Implementation& of = *implementation_;
  const SqliteTransaction one_state(*of.connection, false);
  of.every.start();
  std::vector<RunResult> results;
  while (of.every.step()) results.push_back(of.result(of.every));
  return results;
}

std::unordered_map<std::string, RunStatus> ResultsDatabase::statuses() const {
  SqliteStatement every(*implementation_->connection, "SELECT key, status FROM runs");
  std::unordered_map<std::string, RunStatus> statuses;
  while (every.step()) {
    std::string key = every.text();
    statuses.emplace(std::move(key), run_status_from(every.text()));
  }
  return statuses;
}

std::string checksum_of(const RunResult& result) {
  std::vector<std::string> rows;
  for (const Measurement& row : result.measurements) {
    rows.push_back(fmt::format("{} {} {} {} {}", to_string(row.split), row.axis, exact(row.x),
                               row.metric, exact(row.value)));
  }
  std::ranges::sort(rows);
  std::vector<std::string> texts = {result.key,
                                    result.configuration,
                                    std::string(to_string(result.status)),
                                    result.message,
                                    std::to_string(result.epochs),
                                    std::to_string(result.steps),
                                    result.device,
                                    exact(result.seconds),
                                    result.version,
                                    result.commit,
                                    result.ended};
  texts.insert(texts.end(), rows.begin(), rows.end());
  uint64_t hash = hash_of("");
  for (const std::string& text : texts) hash = hash_of_part(text, hash);
  return fmt::format("{:016x}", hash);
}

bool may_lack_checksum(std::string_view version) { return version == "0.1.0"; }

bool has_database(const fs::path& folder) {
  const fs::path file = folder / "results.db";
  std::error_code none;
  return fs::is_directory(file, none) ||  // which opening it refuses
         (fs::file_size(file, none) > 0 && !none);
}

}  // namespace posattn
