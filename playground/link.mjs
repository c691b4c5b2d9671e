// A setting as a link: everything after '#' is key=value&..., with the tab's name under `tab`.
export const readLink = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

export const linkOf = (values) => `#${new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''))}`;

/** Keeps the address up to date without a new entry in the history. */
export function writeLink(values) {
  const link = linkOf(values);
  if (location.hash !== link) history.replaceState(null, '', link);
}
