// SQLite as the results database needs it: one connection, prepared statements, transactions. Every
// problem is an Error: of the machine (a full disk) failed, of the file itself data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace posattn {

class SqliteConnection {
 public:
  // Opens the file for reading and writing, as far as its permissions go; `create`: makes it.
  SqliteConnection(std::filesystem::path file, bool create);
  // A copy of the whole database in memory; its errors still speak of the original's file.
  enum class Copy { in_memory };
  SqliteConnection(const SqliteConnection& original, Copy);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  void check(int code) const;  // throws for what is no success
  void execute(const std::string& sql) const;
  int64_t ask(const std::string& sql) const;  // the first column of the first row, or 0
  sqlite3* get() const { return database_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  SqliteConnection(std::filesystem::path file, const std::string& place, bool create);

  std::filesystem::path file_;
  sqlite3* database_ = nullptr;
};

// Parameters are bound and columns are read in order:
//   statement.start(key); while (statement.step()) name = statement.text();
// A statement reads (and keeps a lock) until step() has said false, or start() or finish().
class SqliteStatement {
 public:
  SqliteStatement(const SqliteConnection& connection, const std::string& sql);
  ~SqliteStatement();
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  // Begins again, with these parameters.
  template <class... Values>
  SqliteStatement& start(const Values&... values) {
    reset();
    (bind(values), ...);
    return *this;
  }
  bool step();    // whether there is a row
  void finish();  // steps to the end

  std::string text();
  int64_t integer();
  double number();  // NULL is NaN

 private:
  void reset();
  void bind(std::string_view text);
  void bind(int64_t value);
  void bind(double value);  // NaN is stored as NULL

  const SqliteConnection& connection_;
  sqlite3_stmt* statement_ = nullptr;
  int parameter_ = 0, column_ = 0;
};

// Undone unless it is committed.
class SqliteTransaction {
 public:
  explicit SqliteTransaction(const SqliteConnection& connection, bool writing);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  void commit();

 private:
  const SqliteConnection& connection_;
  bool committed_ = false;
};

// The error of a file that is no database of ours.
[[noreturn]] void refuse_database(const std::filesystem::path& file, const std::string& why);

// The tables of results.db. Every format that a release has written can be opened: it is brought to
// ours, step by step, in one transaction.

// Without tables: also what a process leaves that is killed before they are there.
bool is_empty(const SqliteConnection& connection);

void make_tables(const SqliteConnection& connection);

// Throws Error(data) for a database of something else or of a newer program.
void check_format(const SqliteConnection& connection);
bool has_older_format(const SqliteConnection& connection);
// A process that is killed meanwhile leaves the older database intact.
void bring_to_our_format(const SqliteConnection& connection);

}  // namespace posattn
