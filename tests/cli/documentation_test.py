"""docs/commands.md is what the program writes, with every command, option and default; the tables of
docs/reproduction.md are those of results/."""

import json
import re
import shutil
import subprocess
import sys
import unittest

from support import ROOT, CliCase, command_names


class Documentation(CliCase):
    def setUp(self):
        super().setUp()
        self.page = (ROOT / "docs" / "commands.md").read_text()

    def section(self, command):
        found = re.search(rf"^## {command}\n(.*?)(?=^## |\Z)", self.page, re.M | re.S)
        self.assertIsNotNone(found, f"docs/commands.md has no section '{command}'")
        return found[1]

    def commands(self):
        return command_names(self.run_ok("--help"))

    def test_the_program_writes_the_page(self):
        self.assertEqual(self.page, self.run_ok("help", "--markdown"),
                         "posattn help --markdown > docs/commands.md")

    def test_manual_pages(self):
        """One for each command, with its flags, that man can set without a warning."""
        self.run_ok("help", "--manual", "man")
        pages = {file.name: file.read_text() for file in (self.folder / "man").iterdir()}
        self.assertEqual(set(pages), {"posattn.1", *(f"posattn-{command}.1" for command in self.commands())})
        for command in self.commands():
            flags = re.findall(r"^  (?:-\w,)*(--[a-z0-9-]+)", self.run_ok(command, "--help"), re.M)
            for flag in flags:
                self.assertIn(flag.replace("-", "\\-"), pages[f"posattn-{command}.1"])
            self.assertIn(f"posattn-{command}".replace("-", "\\-"), pages["posattn.1"])
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z", *(self.folder / "man").iterdir()],
                                  capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
        self.run_error(2, "help", "train", "--manual", "man", message="--manual")

    def test_every_option_of_every_command(self):
        commands = self.commands()
        self.assertIn("simulate-standard", commands)
        for command in commands:
            section = self.section(command)
            text = self.run_ok(command, "--help").split("Examples:")[0]
            for flag in set(re.findall(r"^  (?:-h,)?(--[a-z0-9-]+)", text, re.M)) - {"--help"}:
                with self.subTest(command=command, flag=flag):
                    self.assertRegex(section, re.escape(flag) + r"(?![a-z0-9-])")

    def test_no_option_that_does_not_exist(self):
        for command in self.commands():
            known = self.run_ok(command, "--help")
            for flag in re.findall(r"^\| `(--[a-z0-9-]+)", self.section(command), re.M):
                self.assertIn(flag, known, command)

    def test_defaults_of_settings(self):
        rows = re.findall(r"^\| `--([a-z0-9-]+)[^`]*` \| (?:`(.*?)`)? ?\| .* \|$", self.section("train"), re.M)
        settings = json.loads(self.run_ok("train", "--dry-run", "--json"))
        # Part of a run's result, so that what "auto" means here is printed.
        self.assertIn(settings["precision"], ["fp32", "tf32"])
        settings["precision"] = "auto"
        # Settings newer than 0.1.0 are left out of files while they have their default.
        newer = {"from": "", "from-hash": "", "from-noise": 0.0, "test-lengths": "",
                 "test-axis": "", "causal": False, "split-heads": False, "join": "concatenate",
                 "normalisation": "none", "activation": "relu", "positions": "joined",
                 "tied-output": False, "codes": False, "fresh": False, "initial": "paper",
                 "decay": "all"}
        newer = {name: value for name, value in newer.items() if name not in settings}
        rows = [(name, value) for name, value in rows if name in settings or name in newer]
        self.assertEqual([name for name, _ in rows if name not in newer], list(settings))
        for name, documented in rows:
            value = newer[name] if name in newer else settings[name]
            if isinstance(value, bool):
                value = "true" if value else ""  # a flag is off
            elif isinstance(value, float):
                documented = float(documented)
            self.assertEqual(documented, value if isinstance(value, float) else str(value), name)

    def test_the_line_of_a_task_works_wherever_it_is_pasted(self):
        page = (ROOT / "docs" / "adding-a-task.md").read_text()
        line = re.search(r"^## The line\n.*?```cpp\n(.*?)```", page, re.M | re.S)[1]
        folder = self.folder / "posattn" / "tasks"
        folder.mkdir(parents=True)
        lines = (ROOT / "src/posattn/tasks/task_list.inc").read_text().splitlines(keepends=True)
        for place in range(len(lines) + 1):
            (folder / "task_list.inc").write_text("".join(lines[:place] + [line] + lines[place:]))
            done = subprocess.run(
                ["c++", "-std=c++20", "-E", "-P", "-I", self.folder, "-I", ROOT / "src",
                 ROOT / "src/posattn/tasks/task.cc"], capture_output=True, text=True, check=True)
            self.assertIn("const Task& cumulative_spread_task();", done.stdout, place)
            self.assertIn("&cumulative_spread_task(),", done.stdout, place)

    def test_one_version(self):
        version = re.search(r"project\(posattn VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        for file, line in {"CITATION.cff": f"version: {version}", "docs/cite.md": f"version = {{{version}}},",
                           "CHANGELOG.md": f"## {version}"}.items():
            self.assertIn(line, [text.strip() for text in (ROOT / file).read_text().splitlines()], file)
        self.assertIn(f"find_package(posattn {version.rpartition('.')[0]} ", (ROOT / "docs/site/embed.md").read_text())

    def test_exit_codes(self):
        for code in [0, 1, 2, 3, 4, 5, 6, 130]:
            self.assertRegex(self.page, rf"(?m)^\| {code} \| ")

    def test_tables_of_results(self):
        script = ROOT / "scripts" / "reproduction_tables.py"
        done = subprocess.run([sys.executable, "-B", script, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
