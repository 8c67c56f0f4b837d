// Who a `kapi` process below this Pi acts for: the model or the person.
//
// While the package is loaded, Pi's own environment carries the mark of an agent run, so that
// `kapi` started by the model's shell is refused what only a person may do. What the person asked
// for, by a command or a dialog, is started without it. A mark that Pi itself was started with is
// nobody's to remove: then this Pi is an agent, and so is everything below it.

const MARK = "KAPI_RUN_ID";
const OURS = `pi-${process.pid}`;

/** Marks everything that Pi starts from now on. */
export function markAgents(): void {
	process.env[MARK] ??= OURS;
}

/** Takes our own mark away again. */
export function unmarkAgents(): void {
	if (process.env[MARK] === OURS) delete process.env[MARK];
}

/** Returns the environment of what the person asked for. */
export function personsEnvironment(): NodeJS.ProcessEnv {
	const environment = { ...process.env };
	if (environment[MARK] === OURS) delete environment[MARK];
	return environment;
}
