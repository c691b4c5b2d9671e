// The tables of results.db. Every format that a release has written can be opened: it is brought to
// ours, step by step, in one transaction.
#pragma once

#include "posattn/results/sqlite.h"

namespace posattn {

// Without tables: also what a process leaves that is killed before they are there.
bool is_empty(const SqliteConnection& connection);

void make_tables(const SqliteConnection& connection);

// Throws Error(data) for a database of something else or of a newer program.
void check_format(const SqliteConnection& connection);
bool has_older_format(const SqliteConnection& connection);
// Whoever is killed on the way leaves the older database whole.
void bring_to_our_format(const SqliteConnection& connection);

}  // namespace posattn
