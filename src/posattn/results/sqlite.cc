#include "posattn/results/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <limits>
#include <memory>

#include "posattn/base/error.h"

namespace posattn {
namespace {

constexpr int patience = 20000;  // ms to wait for a reader or the writer

[[noreturn]] void fail(const std::filesystem::path& file, sqlite3* database, int code) {
  const std::string reason = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code);
  switch (code & 0xff) {  // without the detail of extended codes
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
      throw Error(ExitCode::failed, fmt::format("cannot use '{}': {}", file.string(), reason), "",
                  "free some space, or choose a place that you may write to");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(ExitCode::failed, fmt::format("'{}' is in use by another process", file.string()),
                  "", "wait until it has ended");
    default:
      refuse_database(file, reason);
  }
}

constexpr int64_t format_version = 2;
constexpr int64_t application = 0x706f7361;  // "posa" marks the file as ours

// `revision` is RunResult::commit, which is a word of SQL; `checksum` is checksum_of(run), empty
// for runs that 0.1.0 recorded.
constexpr const char* runs_table = R"(
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
  checksum TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
)";

// `tests` shows tests in value ranges as the table of format 1 did.
constexpr const char* measurements_table = R"(
CREATE TABLE measurements (
  key TEXT NOT NULL REFERENCES runs (key),
  split TEXT NOT NULL,
  axis TEXT NOT NULL,
  x REAL NOT NULL,
  metric TEXT NOT NULL,
  value REAL,
  PRIMARY KEY (key, split, axis, x, metric)
) STRICT, WITHOUT ROWID;
)";
constexpr const char* tests_view = R"(
CREATE VIEW tests (key, c, mse, mse_over_c2, accuracy) AS
  SELECT key, x,
    max(value) FILTER (WHERE metric = 'mse'),
    max(value) FILTER (WHERE metric = 'mse') / (x * x),
    max(value) FILTER (WHERE metric = 'accuracy')
  FROM measurements WHERE split = 'test' AND axis = 'c' GROUP BY key, x;
)";

// Format 1, of posattn 0.1.0, had the losses in `runs` and a table tests (key, c, mse, mse_over_c2,
// accuracy).
constexpr const char* first_rows = R"(
INSERT INTO measurements
  SELECT key, 'test', 'c', c, 'mse', mse FROM tests UNION ALL
  SELECT key, 'test', 'c', c, 'accuracy', accuracy FROM tests UNION ALL
  SELECT key, 'train', '', 0, 'mse', train_loss FROM runs WHERE train_loss IS NOT NULL UNION ALL
  SELECT key, 'validation', '', 0, 'mse', validation_loss FROM runs
    WHERE validation_loss IS NOT NULL;
DROP TABLE tests;
ALTER TABLE runs DROP COLUMN train_loss;
ALTER TABLE runs DROP COLUMN validation_loss;
ALTER TABLE runs ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
)";

int64_t version_of(const SqliteConnection& connection) {
  return connection.ask("PRAGMA user_version");
}

void set_version(const SqliteConnection& connection) {
  connection.execute(fmt::format("PRAGMA user_version = {}", format_version));
}

}  // namespace

void refuse_database(const std::filesystem::path& file, const std::string& why) {
  throw Error(ExitCode::data, fmt::format("'{}' cannot be used: {}", file.string(), why),
              "a file written by posattn reproduce",
              "choose another --results, or move the file away: finished runs are then read again "
              "from their folders");
}

SqliteConnection::SqliteConnection(std::filesystem::path file, const std::string& place,
                                   bool create)
    : file_(std::move(file)) {
  const int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(place.c_str(), &database_, flags, nullptr);
  if (code != SQLITE_OK) {
    // Even a connection that failed has to be closed, once its message has been read.
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> closing(database_, sqlite3_close);
    fail(file_, database_, code);
  }
  sqlite3_extended_result_codes(database_, 1);
  sqlite3_busy_timeout(database_, patience);
}

SqliteConnection::SqliteConnection(std::filesystem::path file, bool create)
    : SqliteConnection(file, file.string(), create) {}

SqliteConnection::SqliteConnection(const SqliteConnection& original, Copy)
    : SqliteConnection(original.file_, ":memory:", true) {
  sqlite3_backup* backup = sqlite3_backup_init(database_, "main", original.database_, "main");
  if (backup == nullptr) fail(file_, database_, sqlite3_errcode(database_));
  sqlite3_backup_step(backup, -1);  // all pages
  check(sqlite3_backup_finish(backup));
}

SqliteConnection::~SqliteConnection() { sqlite3_close_v2(database_); }

void SqliteConnection::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) fail(file_, database_, code);
}

void SqliteConnection::execute(const std::string& sql) const {
  check(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr));
}

int64_t SqliteConnection::ask(const std::string& sql) const {
  SqliteStatement statement(*this, sql);
  return statement.step() ? statement.integer() : 0;
}

SqliteStatement::SqliteStatement(const SqliteConnection& connection, const std::string& sql)
    : connection_(connection) {
  connection_.check(sqlite3_prepare_v3(connection_.get(), sql.c_str(), -1,
                                       SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::reset() {
  sqlite3_reset(statement_);
  parameter_ = 0;
}

void SqliteStatement::bind(std::string_view text) {
  connection_.check(sqlite3_bind_text64(statement_, ++parameter_, text.data(), text.size(),
                                        SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::bind(int64_t value) {
  connection_.check(sqlite3_bind_int64(statement_, ++parameter_, value));
}

void SqliteStatement::bind(double value) {
  connection_.check(sqlite3_bind_double(statement_, ++parameter_, value));
}

bool SqliteStatement::step() {
  column_ = 0;
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW) sqlite3_reset(statement_);
  connection_.check(code);
  return code == SQLITE_ROW;
}

void SqliteStatement::finish() {
  while (step()) {
  }
}

std::string SqliteStatement::text() {
  const int column = column_++;
  const unsigned char* value = sqlite3_column_text(statement_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return value == nullptr ? "" : std::string(reinterpret_cast<const char*>(value), size);
}

int64_t SqliteStatement::integer() { return sqlite3_column_int64(statement_, column_++); }

double SqliteStatement::number() {
  const int column = column_++;
  return sqlite3_column_type(statement_, column) == SQLITE_NULL
             ? std::numeric_limits<double>::quiet_NaN()
             : sqlite3_column_double(statement_, column);
}

SqliteTransaction::SqliteTransaction(const SqliteConnection& connection, bool writing)
    : connection_(connection) {
  connection_.execute(writing ? "BEGIN IMMEDIATE" : "BEGIN");
}

SqliteTransaction::~SqliteTransaction() {
  if (!committed_) sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void SqliteTransaction::commit() {
  connection_.execute("COMMIT");
  committed_ = true;
}

bool is_empty(const SqliteConnection& connection) {
  return version_of(connection) == 0 && connection.ask("SELECT count(*) FROM sqlite_master") == 0;
}

void make_tables(const SqliteConnection& connection) {
  SqliteTransaction transaction(connection, true);
  for (const char* sql : {runs_table, measurements_table, tests_view}) connection.execute(sql);
  connection.execute(fmt::format("PRAGMA application_id = {}", application));
  set_version(connection);
  transaction.commit();
}

void check_format(const SqliteConnection& connection) {
  if (connection.ask("PRAGMA application_id") != application) {
    refuse_database(connection.file(), "it is a database of something else");
  }
  const int64_t version = version_of(connection);
  if (version > format_version) {
    throw Error(ExitCode::data,
                fmt::format("'{}' was made by a newer posattn (format {})",
                            connection.file().string(), version),
                fmt::format("format {}", format_version), "use that version, or another --results");
  }
  if (version < 1) refuse_database(connection.file(), "its format is unknown");
}

bool has_older_format(const SqliteConnection& connection) {
  return version_of(connection) < format_version;
}

void bring_to_our_format(const SqliteConnection& connection) {
  SqliteTransaction transaction(connection, true);
  for (const char* sql : {measurements_table, first_rows, tests_view}) connection.execute(sql);
  set_version(connection);
  transaction.commit();
}

}  // namespace posattn
