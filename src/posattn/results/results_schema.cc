#include "posattn/results/results_schema.h"

#include <fmt/format.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

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
