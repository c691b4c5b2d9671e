#include "posattn/results/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <limits>
#include <memory>
#include <utility>

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

SqliteStatement& SqliteStatement::start() {
  sqlite3_reset(statement_);
  parameter_ = 0;
  return *this;
}

SqliteStatement& SqliteStatement::bind(const std::string& text) {
  connection_.check(sqlite3_bind_text64(statement_, ++parameter_, text.data(), text.size(),
                                        SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

SqliteStatement& SqliteStatement::bind(int64_t value) {
  connection_.check(sqlite3_bind_int64(statement_, ++parameter_, value));
  return *this;
}

SqliteStatement& SqliteStatement::bind(double value) {
  connection_.check(sqlite3_bind_double(statement_, ++parameter_, value));
  return *this;
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

}  // namespace posattn
