package telemetry

// WaitingOn names the metric of entries that wait on a dependency. It is published only while there are some, so it
// costs its $0.30 only in a month with an outage.
func WaitingOn(dependency string) string { return "WaitingOn_" + dependency }
