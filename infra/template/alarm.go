package template

import "fmt"

// Alarm is a CloudWatch alarm.
type Alarm struct {
	Name        string
	Description string
	Metrics     []AlarmMetric // one, or those an expression reads
	Expression  string
	Threshold   float64
	Comparison  string
	Periods     int
	Datapoints  int
	Missing     string // TreatMissingData
	Actions     []Part
	OKActions   []Part
}

// AlarmMetric is a metric an alarm reads.
type AlarmMetric struct {
	ID                         string // its name in the expression
	Namespace, Name, Statistic string
	Period                     int // seconds
	Dimensions                 map[string]Value
}

// Alarms reads all alarms of one metric or expression.
func (t Template) Alarms() ([]Alarm, error) {
	var alarms []Alarm
	for _, id := range t.OfType("AWS::CloudWatch::Alarm") {
		p := t.Resources[id].Properties
		a := Alarm{
			Name:        str(p, "AlarmName"),
			Description: str(p, "AlarmDescription"),
			Comparison:  str(p, "ComparisonOperator"),
			Periods:     integer(p, "EvaluationPeriods"),
			Datapoints:  integer(p, "DatapointsToAlarm"),
			Missing:     str(p, "TreatMissingData"),
		}
		a.Threshold, _ = p["Threshold"].(float64)
		var err error
		if a.Actions, err = parts(p["AlarmActions"]); err != nil {
			return nil, fmt.Errorf("actions of alarm %s: %w", a.Name, err)
		}
		if a.OKActions, err = parts(p["OKActions"]); err != nil {
			return nil, fmt.Errorf("actions of alarm %s: %w", a.Name, err)
		}
		if err := a.read(p); err != nil {
			return nil, fmt.Errorf("metrics of alarm %s: %w", a.Name, err)
		}
		alarms = append(alarms, a)
	}
	return alarms, nil
}

func (a *Alarm) read(p map[string]any) error {
	queries := list(p["Metrics"])
	if len(queries) == 0 {
		metric, err := metricOf(p, str(p, "Statistic")+str(p, "ExtendedStatistic"), integer(p, "Period"))
		a.Metrics = []AlarmMetric{metric}
		return err
	}
	for _, query := range queries {
		if expression := str(query, "Expression"); expression != "" {
			a.Expression = expression
			continue
		}
		stat := at(query, "MetricStat")
		metric, err := metricOf(at(stat, "Metric"), str(stat, "Stat"), integer(stat, "Period"))
		if err != nil {
			return err
		}
		metric.ID = str(query, "Id")
		a.Metrics = append(a.Metrics, metric)
	}
	return nil
}

func metricOf(v any, statistic string, period int) (AlarmMetric, error) {
	metric := AlarmMetric{
		Namespace: str(v, "Namespace"), Name: str(v, "MetricName"),
		Statistic: statistic, Period: period, Dimensions: map[string]Value{},
	}
	for _, dimension := range list(at(v, "Dimensions")) {
		value, err := valueOf(at(dimension, "Value"))
		if err != nil {
			return AlarmMetric{}, err
		}
		metric.Dimensions[str(dimension, "Name")] = value
	}
	return metric, nil
}

func parts(v any) ([]Part, error) {
	var parts []Part
	for _, each := range list(v) {
		value, err := valueOf(each)
		if err != nil {
			return nil, err
		}
		parts = append(parts, value.Part)
	}
	return parts, nil
}
