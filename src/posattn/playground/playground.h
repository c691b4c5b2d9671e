/* What a page calls: the library as plain C functions over handles, for JavaScript next to the
   WebAssembly module (wasm/engine.mjs wraps them). One caller at a time.

   A function that returns int32_t gives a handle, a count or 0, and -1 where it failed. What it has
   to tell lies in one place until the next call: a text (play_text: JSON unless said otherwise,
   UTF-8) and numbers (play_numbers). After -1 the text is
     {"message", "problem", "expected", "hint", "exit_code", "line", "column"}
   with the place in a program's text where there is one. No function throws.

   A row is one input, node after node: its token where the model has tokens, then its numbers. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- answers and memory ---------------------------------------------------------------------- */
const char* play_text(void);
int32_t play_text_size(void); /* bytes; a zero byte follows them */
const double* play_numbers(void);
int32_t play_numbers_count(void);
void* play_allocate(int32_t bytes); /* room for arguments; null where there is none */
void play_release(void* pointer);

/* ---- what there is --------------------------------------------------------------------------- */
/* {"version", "instruction_set", "tasks": [{name, description, axes, settings, letters}],
   "architectures": [{name, description, broken_by}], "programs": [{name, description}],
   `letters` says whether nodes hold a letter and a number,
   broken_by says why not f_b(c x) = c f_(b/c)(x), and is empty where that holds; "settings":
   [{name, section, type, default, help, accepts}]} */
int32_t play_catalogue(void);
/* The text of a program of the library, as it is. */
int32_t play_program_text(const char* name);

/* ---- models ---------------------------------------------------------------------------------- */
/* A model to train from its start. Settings are lines "key=value" with the keys of `posattn train`
   (also --set), on top of those that suit the task. A handle; text as play_describe. */
int32_t play_train(const char* settings);
/* The model of a file's bytes, for everything but play_advance. A handle; text as play_describe. */
int32_t play_load(const uint8_t* bytes, int32_t size, const char* name);
/* The text is the bytes of a model file. */
int32_t play_save(int32_t model);
/* {"task", "architecture", "length", "real_nodes", "scratch_nodes", "data_columns",
   "output_columns", "vocabulary", "letters", "classes", "depth", "heads", "width", "parameters",
   "steps_per_epoch", "loss"}: `letters` has the words of tokens where nodes hold a letter and a
   number, `classes` says whether outputs are scores of classes, `loss` is the metric's name;
   steps_per_epoch is 0 for a model from a file. */
int32_t play_describe(int32_t model);
/* Trains epochs, at least one, until so many milliseconds have passed. How many; numbers: for each
   [epoch, step, mean loss, rate]. Fewer than one at the end; a text then says why, "" where all
   epochs are done. */
int32_t play_advance(int32_t model, double milliseconds);
/* The loss on fresh samples at values of an axis, as "c=1..10". numbers: [x, loss] for each. */
int32_t play_errors(int32_t model, const char* axis_values, int32_t samples, int32_t seed);
/* Sample `index` of the task, its numbers times c. numbers: a row, then the truth as in
   play_answer. Returns the length of the row. */
int32_t play_sample(int32_t model, double c, int32_t index, int32_t seed);
/* numbers: the model's outputs [real_nodes, output_columns], then as many of the truth, NaN where
   the task has none and at nodes that are not read; with classes one of each for a node, -1 for
   undecided. */
int32_t play_answer(int32_t model, const double* row, int32_t count);
/* numbers: [depth, heads, nodes, nodes], the scratch nodes last. */
int32_t play_attention(int32_t model, const double* row, int32_t count);
void play_free_model(int32_t model);

/* ---- programs -------------------------------------------------------------------------------- */
/* Compiles a text for length n; parameters as "K=16,q=4". Sharpness 0: routes; above: queries and
   keys whose scores differ by so much (exact from 104 on). A handle, and
   {"name", "task", "processors", "words": [{name, type, own, starts}], "inputs", "outputs": word
   numbers, "rounds": [{"lines", "origin", "sets", "layers", "updates", "receives": [{"name",
   "word", "sources" or "weighted"}]}], "written": null or {"words", "inputs", "outputs", "rounds"},
    "promises": [{"promise", "first", "count"}]: what the inputs from `first` on must keep,
    "parameters": [{name, value, low, high}], "warnings",
    "depth", "heads", "width", "mlp_width", "weights"}.
   Words that are the text's are its `own`; those that do not have a value when it `starts` get one
   in a round that `sets` them. Rounds are those of the network: messages have been routed, and
   `origin` is then the round that they help. sources[i] is who processor i reads, `processors` for
   nobody. A program that sends messages is also told as it is written: a receive then may have
   "destination" in place of sources, the word that says at the round's start where each processor's
   message goes. */
int32_t play_compile(const char* text, int32_t length, const char* parameters, double sharpness);
/* numbers: an input [processors, inputs] that keeps the program's promises. */
int32_t play_draw(int32_t program, double c, int32_t seed);
/* The network's numbers and the program's. numbers: [rounds + 1, processors, words, 2], before
   the first round and after each: the program's word, and what the network holds, NaN where it does
   not hold it. */
int32_t play_words(int32_t program, const double* row, int32_t count);
/* The program as it is written. numbers: [rounds + 1, processors, words] of `written`, or of the
   program itself where it sends no messages. */
int32_t play_trace(int32_t program, const double* row, int32_t count);
/* numbers: the network's outputs [processors, outputs], then the program's. */
int32_t play_run(int32_t program, const double* row, int32_t count);
/* {"holds", "decided", "scales": [{c, samples, mismatches, largest_error, largest_bound, mse}],
   "counter_example": null or {c, input, expected, found, against}}. Returns the mismatches. */
int32_t play_verify(int32_t program, int32_t samples, int32_t seed);
/* Every compiled weight times 1 + noise x a Gaussian, who reads whom left as it is; 0: as compiled.
 */
int32_t play_noise(int32_t program, double noise, int32_t seed);
void play_free_program(int32_t program);

#ifdef __cplusplus
}
#endif
