// Package scenario says what customers do.
//
// A [Scenario] is a mix of behaviours with shares, read from YAML. A customer's
// intent is a pure function of the scenario, the run's name, the seed and the
// intent's number ([Source.Intent]): the same run can be sent again, request by
// request, and an audit can ask what was sent without having kept it.
//
// It must not know how requests travel, nor what a server answers.
package scenario
