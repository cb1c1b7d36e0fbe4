package projection

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"backstop/internal/handler"
)

// encode turns a row's value into DynamoDB's. A float is an error: money is never one.
func encode(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case string:
		return &types.AttributeValueMemberS{Value: v}, nil
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}, nil
	case int:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(v)}, nil
	case []any:
		list := make([]types.AttributeValue, len(v))
		for i, element := range v {
			encoded, err := encode(element)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			list[i] = encoded
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case map[string]any:
		return encodeMap(v)
	case handler.Row:
		return encodeMap(v)
	}
	return nil, fmt.Errorf("a row cannot hold a %T", v)
}

func encodeMap(v map[string]any) (types.AttributeValue, error) {
	m := make(map[string]types.AttributeValue, len(v))
	for name, element := range v {
		encoded, err := encode(element)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m[name] = encoded
	}
	return &types.AttributeValueMemberM{Value: m}, nil
}

// decodeRow is the other way round. Kinds no row of ours has (binary, sets) read as absent.
func decodeRow(item map[string]types.AttributeValue) handler.Row {
	row := make(handler.Row, len(item))
	for name, v := range item {
		if value, ok := decode(v); ok {
			row[name] = value
		}
	}
	return row
}

func decode(v types.AttributeValue) (any, bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberNULL:
		return nil, true
	case *types.AttributeValueMemberS:
		return v.Value, true
	case *types.AttributeValueMemberBOOL:
		return v.Value, true
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		return n, err == nil
	case *types.AttributeValueMemberL:
		list := make([]any, 0, len(v.Value))
		for _, element := range v.Value {
			value, _ := decode(element)
			list = append(list, value)
		}
		return list, true
	case *types.AttributeValueMemberM:
		m := make(map[string]any, len(v.Value))
		for name, element := range v.Value {
			if value, ok := decode(element); ok {
				m[name] = value
			}
		}
		return m, true
	}
	return nil, false
}
