// A row is one input, node after node: its token, where the model has tokens, then its numbers.
const tokens = (about) => (about.vocabulary > 0 ? 1 : 0);

export const columnsOf = (about) => tokens(about) + about.data_columns;

/** The row with its numbers times a factor; tokens stay. */
export const scaled = (about, row, factor) => Array.from(row, (value, at) => (at % columnsOf(about) < tokens(about) ? value : value * factor));
